// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the ports of a rail's cards carry packets, as the system sees its own end of the cable.
#pragma once

#include "transport/ucx/rail.hpp"

#include <string>

namespace gantry::transport::ucx {

// Below a /sys. What is no card, or does not tell, counts as active.
bool ports_are_active(const Rail& rail, const std::string& sys);
// Of a device as UCX names it (rc_mlx5/mlx5_0:1).
bool port_is_active(std::string resource, const std::string& sys);

}  // namespace gantry::transport::ucx

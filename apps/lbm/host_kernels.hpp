// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels for the host: what --memory host calls, and the simulated GPU.
#pragma once

#include "../common/kernel.hpp"

namespace gantry::apps::lbm {

extern const Kernel kCollideDouble, kStreamDouble, kSumDouble;
extern const Kernel kCollideFloat, kStreamFloat, kSumFloat;

}  // namespace gantry::apps::lbm

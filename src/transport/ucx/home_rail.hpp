// SPDX-License-Identifier: BSD-3-Clause
//
// The home rail of a rank: it carries its small messages and puts. The rails whose card is at the
// rank's own NUMA node are the nearest ones; the ranks of a node take those in turn, so that they do
// not all crowd one. Where the machine does not say where a card or a rank is, all rails are alike.
#pragma once

#include "transport/ucx/rail.hpp"

#include <span>
#include <string>
#include <vector>

namespace gantry::transport::ucx {

// `nodes`: of each rail, -1 where unknown; `own`: of this process, -1: it may run on several.
int choose_home_rail(std::span<const int> nodes, int own, int local_rank);

// The NUMA node of a rail's first device below a /sys; -1: unknown.
int numa_node_of(const Rail& rail, const std::string& sys);
// Of a device as UCX names it (tcp/eth0, rc_mlx5/mlx5_0:1).
int numa_node_of(std::string resource, const std::string& sys);
// The only NUMA node on whose processors this process may run; -1: there are several.
int own_numa_node(const std::string& sys);

int find_home_rail(const std::vector<Rail>& rails, int local_rank);

}  // namespace gantry::transport::ucx

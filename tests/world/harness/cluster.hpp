// SPDX-License-Identifier: BSD-3-Clause
//
// Clusters that are described and not there: a machine of model/machines, ranks a node, and how fast
// the applications' own kernels are on its GPUs. What an application computes is virtual time in the
// world, so these numbers decide which share of a step is communication.
#pragma once

#include "world/harness/world.hpp"

#include <string_view>
#include <vector>

namespace gantry::world {

struct Cluster {
    std::string_view name, about;
    const char* machine;
    int ranks_per_node;
    double kernel_rate;               // bytes per second that kernels read and write together
    double lbm_cell, awp_cell;        // nanoseconds a cell and step
    void (*change)(model::Machine&);  // what differs from the machine; null: nothing
};

const std::vector<Cluster>& clusters();
// Null: there is none of that name.
const Cluster* find_cluster(std::string_view name);
model::Machine machine_of(const Cluster& cluster);
Options world_of(const Cluster& cluster, int ranks);

}  // namespace gantry::world

// SPDX-License-Identifier: BSD-3-Clause
//
// The applications' steps in the world by every exchange, and the collectives, at any number of ranks.
#pragma once

#include "world/harness/halo.hpp"

#include <string>
#include <vector>

namespace gantry::reproduce {

struct AppTimes {
    world::AppCase step;
    std::vector<world::HaloTimes> ways;  // those that were asked for
    double wire = 0;  // nanoseconds that one rank's bytes take at the rate of its slowest stage

    const world::HaloTimes& of(world::Halo way) const;
    // The fastest of what a program does without a library that takes device memory; and with Gantry and
    // without packing.
    const world::HaloTimes& best_staged() const {
        return fastest({world::Halo::copies, world::Halo::staged});
    }
    const world::HaloTimes& best_ours() const {
        return fastest({world::Halo::datatypes, world::Halo::neighbours});
    }
    const world::HaloTimes& fastest(std::initializer_list<world::Halo> among) const;
    double gain() const { return best_ours().below(best_staged()); }
    double ideal_gain() const;
};
// `ways`: at least one that stages by hand, and one that does not pack.
AppTimes measure_app(const world::Cluster& cluster, const world::AppCase& step,
                     const std::vector<world::Halo>& ways);

struct ScaleOptions {
    std::string cluster;            // empty: all
    std::vector<std::string> only;  // series, and "collectives"; empty: all
    std::vector<int> ranks;
    std::string picture;  // empty: none
    bool json = false;
};
int scale(const ScaleOptions& options);

}  // namespace gantry::reproduce

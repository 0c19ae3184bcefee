// SPDX-License-Identifier: BSD-3-Clause
//
// One collective of all ranks of a described cluster, on device memory, in the world.
#pragma once

#include "world/harness/cluster.hpp"
#include "world/harness/collectives.hpp"

namespace gantry::world {

struct CollectiveTime {
    Nanoseconds time = 0;  // of one, from the first start to the last end
    double envelopes = 0;  // of a rank
};
// `bytes` of a block or vector; every number is checked.
CollectiveTime measure_collective(const Cluster& cluster, int ranks, Kind kind, Bytes bytes);

}  // namespace gantry::world

// SPDX-License-Identifier: BSD-3-Clause
//
// NeighborBlocks: what a rank knows of the blocks of one direction of a neighbor exchange
// (coll/node/neighbor.hpp): which ranks of its node they are for or from, and where they lie.
#pragma once

#include "coll/node/memory_offer.hpp"
#include "coll/node/neighbor.hpp"
#include "coll/planner.hpp"
#include "transfer/context.hpp"

#include <vector>

namespace gantry::coll {

struct NeighborBlocks {
    struct End {
        int member = -1;  // of the node; -1: it is on another one
        device::Location location = {};
        std::byte* packed = nullptr;  // of a block that comes through scratch memory: there
        bool stored = false;          // it has come there
    };
    std::vector<End> each;     // in the order of the edges
    std::vector<int> members;  // that these lead to, once each

    Held memory =
        Held::nothing;  // all that stay here: of one GPU, which moves them by kernels, or other
    int gpu = 0;
    bool time_sliced = false, strided = false;
    Bytes bytes = 0;
    std::uint64_t count = 0;  // of blocks that are not empty

    NeighborBlocks(const Planner::OnNode& node, const std::vector<NeighborTraffic::Edge>& edges);
    // Finds out where they lie.
    void locate(transfer::Context& context, const std::vector<NeighborTraffic::Edge>& edges);
};

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbor exchange in device memory inside a node: at most two launches a rank, whatever the number
// of neighbors.
//
//   launch 1   packs all outgoing blocks, each straight into where its receiver has room for it: in
//              place, where the block is contiguous there and can be mapped, else in scratch memory.
//              Blocks for this rank itself go in place, too
//   launch 2   unpacks all blocks in scratch memory where they belong
//
// Each rank offers on the node segment (memory_offer.hpp) what it sends and takes, and waits for
// its neighbors alone. What goes from one rank to another goes over the node segment if the one offers to store
// and the other one has room; both see both offers, so both know. Everything else goes by messages: with
// other nodes, with host memory on either side, where the planner expects messages to be faster, and
// where there is no scratch memory.
//
// docs/design/neighbors.md
#pragma once

#include "base/task.hpp"
#include "coll/neighbor_exchange.hpp"
#include "plan/coll_question.hpp"

namespace gantry::coll {

// The blocks of this rank in the order of their messages: those between the same two ranks meet in
// this order.
struct NeighborTraffic {
    struct Edge {
        int rank;  // of the team
        p2p::Buffer block;
    };
    std::vector<Edge> outgoing, incoming;
};

Task<Status> neighbors_directly(Executor& executor, Team team, NeighborTraffic traffic,
                                plan::CallQuestion question);

}  // namespace gantry::coll

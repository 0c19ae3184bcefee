// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbor collectives: blocks between ranks that a topology names as neighbors, and nobody else.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/team.hpp"

#include <memory>
#include <vector>

namespace gantry::coll {

// Whom a rank receives from and sends to. A rank may stand in a list several times, and this rank
// itself may, too. MPI_PROC_NULL is nobody: the block at its place is neither sent nor written.
struct Neighbors {
    // What pairs the blocks when one rank has several for another.
    //   listed     the first of the sender's list comes into the first of the receiver's list, the
    //              second into the second (graphs)
    //   opposite   the lists hold pairs of one step back and one step forth along a dimension, and
    //              what was sent back comes into the block of one step forth (grids). The two are
    //              the same rank where the size of a dimension is 1 or 2.
    enum class Pairing : std::uint8_t { listed, opposite };

    std::vector<int> sources, destinations;
    Pairing pairing = Pairing::listed;
};

// Block i of `outgoing` goes to destination i, and what comes from source i becomes block i of
// `incoming`.
Task<Status> neighbor_exchange(Executor& executor, Team team,
                               std::shared_ptr<const Neighbors> neighbors, Blocks outgoing,
                               Blocks incoming);

// The outgoing blocks of an allgather: one buffer for each of these many destinations.
Blocks same_for_all(const p2p::Buffer& mine, std::size_t destinations);

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives that move blocks without looking at them. Every form (equal blocks, v, w) is the same
// algorithm over Blocks. `in_place`: the own block is where it belongs already.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// Whether all ranks have blocks of one size and know so; that of the v forms is the root's secret.
enum class BlockSizes : std::uint8_t { equal, listed };

// Everybody's `mine` into the root's blocks (which count only there).
Task<Status> gather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                    bool in_place, BlockSizes sizes = BlockSizes::listed);
// The root's blocks, one to everybody's `mine`.
Task<Status> scatter(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                     bool in_place, BlockSizes sizes = BlockSizes::listed);
// Everybody's `mine` into everybody's blocks.
Task<Status> allgather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, bool in_place);
// Block j of rank i becomes block i of rank j.
Task<Status> alltoall(Executor& executor, Team team, Blocks outgoing, Blocks incoming);
// The same within one set of blocks.
Task<Status> alltoall_in_place(Executor& executor, Team team, Blocks all);

}  // namespace gantry::coll

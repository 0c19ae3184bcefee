// SPDX-License-Identifier: BSD-3-Clause
//
// Direct exchange: blocks between ranks of one node without messages. The ranks agree on the board
// of the node (transfer/board.hpp): each posts where its blocks can be had and where blocks for it can be
// stored, and reads what the others posted.
//
//   host memory, small      the sender's blocks lie in its cell of the board; receivers copy them
//   device memory           each rank stores its blocks straight into the receivers' mapped memory,
//                           all in one launch, and then raises its step. Of ranks that share a GPU
//                           that works for one process at a time, one stores for all
//   strided, not mappable   through scratch memory of the GPU (direct_scratch.hpp)
//   anything else           goes by messages, as before
//
// docs/design/device-collectives.md says what was measured.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/direct_offer.hpp"

namespace gantry::coll {

// --- the operations that are such exchanges; arguments as in gather.hpp and bcast.hpp ---
// True: done. False: nothing has happened, on any rank, and the blocks shall go by messages.
Task<Result<bool>> alltoall_directly(Executor& executor, Team team, Blocks outgoing,
                                     Blocks incoming);
Task<Result<bool>> allgather_directly(Executor& executor, Team team, p2p::Buffer mine, Blocks all,
                                      bool in_place);
Task<Result<bool>> bcast_directly(Executor& executor, Team team, p2p::Buffer buffer, int root);
Task<Result<bool>> gather_directly(Executor& executor, Team team, p2p::Buffer mine, Blocks all,
                                   int root, bool in_place);
Task<Result<bool>> scatter_directly(Executor& executor, Team team, Blocks all, p2p::Buffer mine,
                                    int root, bool in_place);

// The first, and the second if the first has done nothing.
Task<Status> directly_or(Executor&, Task<Result<bool>> directly, Task<Status> otherwise);

// Whether exchanges of the team are tried this way at all. Every member gets the same answer.
bool may_exchange_directly(const Team& team);

// Raises this rank's step, or fails with `mine`, and waits for the steps of all: the first failure of
// any rank.
Task<Status> end_together(Executor& executor, transfer::Meeting& meeting, int step, Status mine);

// All of this rank's blocks, those for itself, too.
Task<Result<bool>> exchange_directly(Executor& executor, Team team, Traffic traffic);

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks between ranks of one node without messages: each offers where its blocks can be had and where blocks
// for it can be stored, and reads what the others offer (node_call.hpp).
//
//   host memory, small      the sender's blocks lie in its cell of the node segment; receivers copy them
//   device memory           each rank stores its blocks straight into the receivers' mapped memory,
//                           all in one launch, and then votes. Of ranks that share a GPU
//                           that works for one process at a time, one stores for all
//   strided, not mappable   through scratch memory of the GPU (exchange_scratch.hpp)
//   anything else           goes by messages
//
// plan/coll_plan.hpp says whether ranks meet at all, and which of these ways they take then.
//
// docs/design/device-collectives.md says what was measured.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/node/exchange_offer.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {

// --- the operations that are such exchanges; arguments as in gather.hpp and bcast.hpp ---
// How the ranks go, now that they have met: all have the same plan. One of the node segment (goes_over_node_segment) is
// done; with any other one nothing has happened on any rank, and the blocks shall go by messages.
Task<Result<plan::CollPlan>> alltoall_directly(Executor& executor, Team team, Blocks outgoing,
                                               Blocks incoming, plan::CallQuestion question);
Task<Result<plan::CollPlan>> allgather_directly(Executor& executor, Team team, p2p::Buffer mine,
                                                Blocks all, bool in_place,
                                                plan::CallQuestion question);
Task<Result<plan::CollPlan>> bcast_directly(Executor& executor, Team team, p2p::Buffer buffer,
                                            int root, plan::CallQuestion question);
Task<Result<plan::CollPlan>> gather_directly(Executor& executor, Team team, p2p::Buffer mine,
                                             Blocks all, int root, bool in_place,
                                             plan::CallQuestion question);
Task<Result<plan::CollPlan>> scatter_directly(Executor& executor, Team team, Blocks all,
                                              p2p::Buffer mine, int root, bool in_place,
                                              plan::CallQuestion question);

// All of this rank's blocks, those for itself, too.
Task<Result<plan::CollPlan>> exchange_directly(Executor& executor, Team team, Traffic traffic,
                                               plan::CallQuestion question);

}  // namespace gantry::coll

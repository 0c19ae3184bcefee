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
//   anything else           goes by messages, as before
//
// docs/design/device-collectives.md says what was measured.
#pragma once

#include "base/task.hpp"
#include "coll/direct_offer.hpp"

namespace gantry::coll {

// Whether exchanges of the team are tried this way at all. Every member gets the same answer.
bool may_exchange_directly(const Team& team);

// True: all of this rank's blocks were exchanged, those for itself, too. False: nothing has
// happened, on any rank, and the blocks shall go by messages.
Task<Result<bool>> exchange_directly(Executor& executor, Team team, Traffic traffic);

}  // namespace gantry::coll

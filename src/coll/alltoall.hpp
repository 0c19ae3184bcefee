// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of an all-to-all; coll/alltoall.cpp chooses.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/exchange.hpp"
#include "plan/coll_question.hpp"

namespace gantry::coll {

// What all ranks know of an all-to-all alike.
plan::CallQuestion alltoall_question(const Blocks& blocks, bool in_place);

Task<Status> alltoall_spread(Executor& executor, Team team, Blocks outgoing, Blocks incoming,
                             int outstanding);
// Blocks in device memory go through page-locked memory, `unit` bytes of small ones together; the same
// messages as those of the spread one.
Task<Status> alltoall_staged(Executor& executor, Team team, Blocks outgoing, Blocks incoming,
                             Bytes unit, int outstanding);
Task<Status> alltoall_pairwise(Executor& executor, Team team, Blocks outgoing, Blocks incoming);
// Of equal blocks.
Task<Status> alltoall_bruck(Executor& executor, Team team, Blocks outgoing, Blocks incoming);

// Within one set of blocks.
Task<Status> alltoall_swapping(Executor& executor, Team team, Blocks all);

}  // namespace gantry::coll

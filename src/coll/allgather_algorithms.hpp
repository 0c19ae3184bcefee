// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of an allgather; coll/allgather.cpp chooses. This rank's block is in place already, except
// for Bruck's, which takes it from `mine`.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/exchange.hpp"

namespace gantry::coll {

Task<Status> allgather_ring(Executor& executor, Run& run, Blocks all);
Task<Status> allgather_spread(Executor& executor, Run& run, Blocks all);
// Of equal blocks.
Task<Status> allgather_doubling(Executor& executor, Run& run, Blocks all);
Task<Status> allgather_bruck(Executor& executor, Run& run, p2p::Buffer mine, Blocks all);

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of a broadcast; coll/bcast.cpp chooses. The last two cut the buffer into bytes.
#pragma once

#include "base/task.hpp"
#include "coll/exchange.hpp"

namespace gantry::coll {

Task<Status> bcast_binomial(Executor& executor, Team team, p2p::Buffer buffer, int root);
// As a part of another operation.
Task<Status> bcast_binomial(Executor& executor, Run& run, p2p::Buffer buffer, int root);
Task<Status> bcast_scatter_allgather(Executor& executor, Team team, p2p::Buffer buffer, int root);
Task<Status> bcast_chain(Executor& executor, Team team, p2p::Buffer buffer, int root,
                         Bytes segment);

}  // namespace gantry::coll

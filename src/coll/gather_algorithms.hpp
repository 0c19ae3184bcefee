// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of gather and scatter; coll/gather.cpp chooses.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/exchange.hpp"

namespace gantry::coll {

Task<Status> gather_linear(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                           bool in_place);
Task<Status> scatter_linear(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                            bool in_place);
// Of equal blocks.
Task<Status> gather_binomial(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                             bool in_place);
Task<Status> scatter_binomial(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                              bool in_place);

}  // namespace gantry::coll

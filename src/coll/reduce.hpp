// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/task.hpp"
#include "coll/image.hpp"
#include "coll/reducer.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// The reduction of everybody's `source`, in rank order, into the root's `sink` (not read
// elsewhere). At the root, `source` and `sink` may be one buffer (MPI_IN_PLACE).
Task<Status> reduce(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                    Reducer reducer, int root);

// The same, left in `result` of rank `top`, where the reducer works; any other's holds a part. An operation
// that does not commute is in rank order only where `top` is 0.
Task<Status> reduce_into(Executor& executor, Team team, p2p::Buffer source, Image* result,
                         Reducer reducer, int top);

}  // namespace gantry::coll

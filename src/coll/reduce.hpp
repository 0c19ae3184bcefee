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

// The same, left in `result` of rank `top`, where the reducer works.
Task<Status> reduce_into(Executor& executor, Team team, p2p::Buffer source, Image* result,
                         Reducer reducer, int top);

// What the planner is asked about a reduction of such vectors.
plan::CallQuestion question_of(plan::Collective operation, const p2p::Buffer& vector,
                               const Reducer& reducer);

}  // namespace gantry::coll

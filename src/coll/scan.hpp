// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/task.hpp"
#include "coll/reducer.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// The reduction of the ranks up to and including this one (`exclusive`: before this one; rank 0's
// sink is left alone).
Task<Status> scan(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                  Reducer reducer, bool exclusive);

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// The root's buffer to everybody.
Task<Status> bcast(Executor& executor, Team team, p2p::Buffer buffer, int root);

}  // namespace gantry::coll

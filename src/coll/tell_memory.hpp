// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// A blocking call, behind which the ranks tell each other which memory they brought (coll/known_memory.hpp).
// `team`: the same communicator with a tag of its own.
Task<Status> then_tell_memory(Executor& executor, Task<Status> call, Team team);

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// Ends when every rank of the group has entered.
Task<Status> barrier(Executor& executor, Team team);

}  // namespace gantry::coll

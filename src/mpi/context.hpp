// SPDX-License-Identifier: BSD-3-Clause
//
// Agreement on the context id of a new communicator: the members take the largest of their own next ids. Ids are never used twice, so a
// late message of a freed communicator cannot meet a new one; disjoint groups may share an id, since no rank is in two of them.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"

#include <cstdint>

namespace gantry::mpi {

class Engine;

// Every member of `team` calls this in the same order; `context` is set when the task ends well.
Task<Status> agree_on_context(Executor& executor, Engine& engine, coll::Team team, std::uint32_t* context);

}  // namespace gantry::mpi

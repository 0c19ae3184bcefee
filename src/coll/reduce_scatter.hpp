// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/reducer.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// Reduces everybody's `source` and gives each rank its share. `shares` has counts and displacements
// of each rank's part of the vector (its address is not used).
Task<Status> reduce_scatter(Executor& executor, Team team, p2p::Buffer source, Blocks shares,
                            p2p::Buffer sink, Reducer reducer);

}  // namespace gantry::coll

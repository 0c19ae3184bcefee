// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions that no kernel makes of vectors that the processor cannot reach: an operation of the
// program, long double, addresses that a GPU cannot read.
#pragma once

#include "coll/reducer.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// second[i] = first[i] op second[i], on the host. The next piece of device memory comes while the
// function works on the present one, and the one before goes.
Task<Status> combine_staged(Executor& executor, Team team, Reducer reducer, p2p::Buffer first,
                            p2p::Buffer second);

}  // namespace gantry::coll

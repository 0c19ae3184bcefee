// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of a reduction to all ranks; coll/allreduce.cpp chooses. `vector` lies in host memory and
// has this rank's elements, then the result.
#pragma once

#include "coll/reduce_algorithms.hpp"

namespace gantry::coll {

Task<Status> allreduce_doubling(Executor& executor, Run& run, p2p::Buffer vector, Reducer reducer);
Task<Status> allreduce_rabenseifner(Executor& executor, Run& run, p2p::Buffer vector,
                                    Reducer reducer);
Task<Status> allreduce_ring(Executor& executor, Run& run, p2p::Buffer vector, Reducer reducer);
// Each rank combines a share of everybody's `source`, by `combining`; then the shares go around.
Task<Status> allreduce_in_shares(Executor& executor, Run& run, p2p::Buffer source,
                                 p2p::Buffer vector, Reducer reducer, CombineShares combining);

}  // namespace gantry::coll

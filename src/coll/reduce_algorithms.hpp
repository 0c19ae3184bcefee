// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of a reduction to one rank; coll/reduce.cpp chooses. `sink` counts at the root.
#pragma once

#include "coll/combine_shares.hpp"

namespace gantry::coll {

Task<Status> reduce_binomial(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                             Reducer reducer, int root);
Task<Status> reduce_rabenseifner(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                                 Reducer reducer, int root);
// Each rank combines a share, by `combining`, and sends it to the root.
using CombineShares = Task<Status> (*)(Executor&, Run&, p2p::Buffer, Shares, p2p::Buffer, Reducer);
Task<Status> reduce_in_shares(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                              Reducer reducer, int root, CombineShares combining);

}  // namespace gantry::coll

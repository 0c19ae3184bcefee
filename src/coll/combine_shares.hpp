// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions in shares: every rank combines a part of all vectors. What is combined lies in host
// memory; what is only sent may lie anywhere. One file each.
#pragma once

#include "coll/combine.hpp"
#include "coll/fold.hpp"
#include "coll/shares.hpp"

namespace gantry::coll {

// Recursive halving among a power of two of ranks, within `vector`: afterwards whoever has number i
// has share i there. Of an operation that commutes.
Task<Status> combine_halving(Executor& executor, Run& run, p2p::Buffer vector, Shares shares,
                             PowerOfTwo place, Reducer reducer);
// What comes before: the pairs of ranks beyond a power of two make one vector of two.
Task<Status> fold_pairs(Executor& executor, Run& run, p2p::Buffer vector, PowerOfTwo place,
                        Reducer reducer);
// Around a ring, within `vector`: afterwards rank i has share i there. Commutes.
Task<Status> combine_ring(Executor& executor, Run& run, p2p::Buffer vector, Shares shares,
                          Reducer reducer);
// This rank's share of everybody's `source` into `into`, which may be its place in `source`.
Task<Status> combine_pairwise(Executor& executor, Run& run, p2p::Buffer source, Shares shares,
                              p2p::Buffer into, Reducer reducer);
// The same, ((x0 op x1) op x2) ... for each element.
Task<Status> combine_ordered(Executor& executor, Run& run, p2p::Buffer source, Shares shares,
                             p2p::Buffer into, Reducer reducer);

// Everybody's whole `source` at every rank that `wants` it, combined there in the same order.
inline constexpr int kEverybody = -1;
Task<Status> fold(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer into,
                  Reducer reducer, int wants);

// ((x0 op x1) op x2) ... of `parts` vectors of so many elements, a distance apart, the first at
// `first`; the result replaces the last one, whose address it returns.
Task<Result<p2p::Buffer>> fold_in_order(Executor& executor, Run& run, Reducer reducer,
                                        p2p::Buffer room, std::uint64_t distance, int parts,
                                        std::uint64_t count);

}  // namespace gantry::coll

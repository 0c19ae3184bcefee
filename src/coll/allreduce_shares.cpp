// SPDX-License-Identifier: BSD-3-Clause
//
// In shares: each rank combines one, around a ring, pairwise or in rank order, and then everybody gets
// all of them.
//
//     ring and pairwise: steps 2 (P - 1) (P - 1 + log2 P for a power of two); bytes sent per rank
//     2n (P - 1) / P; memory: two pieces
#include "coll/allreduce_algorithms.hpp"

namespace gantry::coll {

Task<Status> allreduce_ring(Executor& executor, Run& run, p2p::Buffer vector, Reducer reducer) {
    const Shares shares(vector.count, run.size());
    Status met = co_await combine_ring(executor, run, vector, shares, reducer);
    met = co_await gather_shares(executor, run, vector, shares, 0);
    co_return met;
}

Task<Status> allreduce_in_shares(Executor& executor, Run& run, p2p::Buffer source,
                                 p2p::Buffer vector, Reducer reducer, CombineShares combining) {
    const Shares shares(vector.count, run.size());
    Status met =
        co_await combining(executor, run, source, shares, shares.of(vector, run.rank()), reducer);
    met = co_await gather_shares(executor, run, vector, shares, 0);
    co_return met;
}

}  // namespace gantry::coll

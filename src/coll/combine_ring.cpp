// SPDX-License-Identifier: BSD-3-Clause
//
// Around a ring: share s starts at the rank behind its owner and collects each rank's part on its way.
//
//     steps P - 1; bytes sent per rank n (P - 1) / P; memory: two pieces
#include "coll/combine_shares.hpp"

namespace gantry::coll {

Task<Status> combine_ring(Executor& executor, Run& run, p2p::Buffer vector, Shares shares,
                          Reducer reducer) {
    const int size = run.size(), rank = run.rank();
    const int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    for (int step = 1; step < size; ++step) {
        Status met = co_await exchange_and_combine(
            executor, run, shares.around(vector, rank - step), to,
            shares.around(vector, rank - step - 1), from, reducer, Mine::right);
    }
    co_return run.status();
}

}  // namespace gantry::coll

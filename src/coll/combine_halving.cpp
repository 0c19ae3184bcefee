// SPDX-License-Identifier: BSD-3-Clause
//
// Recursive halving: with the partner half way around a rank swaps halves, and combines the one that
// has its own share; then with the partner a quarter away the halves of that, and so on.
//
//     steps log2 P; bytes sent per rank n (P - 1) / P; memory: two pieces
//     before it, for P no power of two: one step, n
#include "coll/combine_shares.hpp"

namespace gantry::coll {

Task<Status> combine_halving(Executor& executor, Run& run, p2p::Buffer vector, Shares shares,
                             PowerOfTwo place, Reducer reducer) {
    int first = 0, end = place.size;
    while (end - first > 1) {
        const int middle = first + (end - first) / 2, half = middle - first;
        const bool low = place.number < middle;
        const int partner = place.rank_of(low ? place.number + half : place.number - half);
        const p2p::Buffer lower = shares.range(vector, first, middle),
                          upper = shares.range(vector, middle, end);
        const p2p::Buffer &mine = low ? lower : upper, &theirs = low ? upper : lower;
        Status met = co_await exchange_and_combine(executor, run, theirs, partner, mine, partner,
                                                   reducer, Mine::right);
        (low ? end : first) = middle;
    }
    co_return run.status();
}

Task<Status> fold_pairs(Executor& executor, Run& run, p2p::Buffer vector, PowerOfTwo place,
                        Reducer reducer) {
    if (!place.in_pair()) co_return run.status();
    const p2p::Buffer nothing = part_of(vector, 0, 0);
    if (place.works()) {
        const int below = run.rank() - 1;
        Status met = co_await exchange_and_combine(executor, run, nothing, below, vector, below,
                                                   reducer, Mine::right);
        co_return met;
    }
    const int above = run.rank() + 1;
    Status met = co_await exchange_and_combine(executor, run, vector, above, nothing, above,
                                               reducer, Mine::right);
    co_return met;
}

}  // namespace gantry::coll

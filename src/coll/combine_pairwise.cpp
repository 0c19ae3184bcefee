// SPDX-License-Identifier: BSD-3-Clause
//
// Pairwise: in step s a rank sends the rank s above it that one's share, straight from its own vector,
// and gets its own share from the rank s below it. Those below come nearest first and go on the left
// of what is there. Then, around the end, come those above, farthest first: they are collected apart
// and go on the right in the end. So the order of ranks is kept.
//
//     steps P - 1; bytes sent per rank n (P - 1) / P; memory: two pieces (and one share, where the
//     operation does not commute)
#include "coll/combine_shares.hpp"

namespace gantry::coll {

Task<Status> combine_pairwise(Executor& executor, Run& run, p2p::Buffer source, Shares shares,
                              p2p::Buffer into, Reducer reducer) {
    const int size = run.size(), rank = run.rank();
    const p2p::Buffer mine = shares.of(source, rank);
    Status placed = co_await copy(executor, run.team, mine, into);
    run.note(std::move(placed));
    Image above;
    bool anything_above = false;
    for (int step = 1; step < size; ++step) {
        const int to = (rank + step) % size, from = (rank - step + size) % size;
        const p2p::Buffer outgoing = shares.of(source, to);
        if (reducer.commutative || from < rank || anything_above) {
            const p2p::Buffer sum = reducer.commutative || from < rank ? into : above.buffer();
            Status met = co_await exchange_and_combine(executor, run, outgoing, to, sum, from,
                                                       reducer, Mine::right);
            continue;
        }
        Status ready = run.after(above.allocate(run.team, into.count, *into.layout, reducer));
        GANTRY_CO_TRY(ready);
        anything_above = true;
        Status met = co_await exchange_pieces(executor, run, outgoing, to, above.buffer(), from);
    }
    if (anything_above) {
        Status combined = co_await combine(executor, run, reducer, into, above.buffer());
        if (run.failed()) co_return run.status();
        placed = co_await copy(executor, run.team, above.buffer(), into);
        run.note(std::move(placed));
    }
    co_return run.status();
}

}  // namespace gantry::coll

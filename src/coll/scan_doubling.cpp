// SPDX-License-Identifier: BSD-3-Clause
//
// Doubling: after round k a rank knows the reduction of the 2^(k+1) ranks that end with itself, and
// passes it to the rank 2^(k+1) above. What comes from below always goes on the left.
//
//     steps ceil(log2 P); bytes sent per rank n in each; memory: 2n (3n for the exclusive scan)
#include "coll/scan_algorithms.hpp"

namespace gantry::coll {
namespace {

Task<Status> shift(Executor& executor, Run& run, p2p::Buffer outgoing, p2p::Buffer incoming,
                   int distance) {
    const int to = run.rank() + distance, from = run.rank() - distance;
    InFlight messages(run);
    if (from >= 0) messages.receive(incoming, from);
    if (to < run.size()) messages.send(outgoing, to);
    Status met = co_await messages.all(executor);
    co_return met;
}

}  // namespace

Task<Status> scan_doubling(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                           Reducer reducer, Scan kind) {
    Run run(team);
    Image with_mine, arrived, before_mine;
    for (Image* image : {&with_mine, &arrived, &before_mine}) {
        if (image == &before_mine && kind == Scan::inclusive) continue;
        Status ready = image->allocate(team, source.count, *source.layout, reducer);
        GANTRY_CO_TRY(ready);
    }
    Status met = co_await copy(executor, team, source, with_mine.buffer());
    run.note(std::move(met));
    bool anything_before = false;
    for (int distance = 1; distance < team.size(); distance *= 2) {
        met = co_await shift(executor, run, with_mine.buffer(), arrived.buffer(), distance);
        if (team.rank() - distance < 0) continue;
        met = co_await combine(executor, run, reducer, arrived.buffer(), with_mine.buffer());
        if (kind == Scan::inclusive) continue;
        if (anything_before) {
            met = co_await combine(executor, run, reducer, arrived.buffer(), before_mine.buffer());
        } else {
            before_mine.swap(arrived);
            anything_before = true;
        }
    }
    if (run.failed()) co_return run.status();
    if (kind == Scan::inclusive)
        met = co_await copy(executor, team, with_mine.buffer(), sink);
    else if (anything_before)
        met = co_await copy(executor, team, before_mine.buffer(), sink);
    co_return met;
}

}  // namespace gantry::coll

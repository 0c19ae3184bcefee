// SPDX-License-Identifier: BSD-3-Clause
//
// Doubling: after round k a rank knows the reduction of the 2^(k+1) ranks that end with itself, and
// passes it to the rank 2^(k+1) above. What comes from below always goes on the left.
#include "coll/scan.hpp"

#include "base/scope.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/direct_reduce.hpp"
#include "coll/exchange.hpp"
#include "coll/image.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {
namespace {

Task<Status> shift(Executor& executor, Team team, p2p::Buffer outgoing, p2p::Buffer incoming,
                   int distance) {
    const int to = team.rank() + distance, from = team.rank() - distance;
    Scope both(executor);
    if (from >= 0) both.spawn(receive(executor, team, incoming, from));
    if (to < team.size()) both.spawn(send(executor, team, outgoing, to));
    Status met = co_await both.join(executor);
    co_return met;
}

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                         Reducer reducer, bool exclusive) {
    reducer = placed(team, source, sink, reducer);
    Image with_mine, arrived, before_mine;
    for (Image* image : {&with_mine, &arrived, &before_mine}) {
        Status ready = image->allocate(team, source.count, *source.layout, reducer);
        GANTRY_CO_TRY(ready);
    }
    Status loaded = co_await copy(executor, team, source, with_mine.buffer());
    GANTRY_CO_TRY(loaded);
    bool anything_before = false;
    for (int distance = 1; distance < team.size(); distance *= 2) {
        Status met = co_await shift(executor, team, with_mine.buffer(), arrived.buffer(), distance);
        GANTRY_CO_TRY(met);
        if (team.rank() - distance < 0) continue;
        Status combined =
            co_await combine(executor, team, reducer, arrived.buffer(), with_mine.buffer());
        GANTRY_CO_TRY(combined);
        if (!exclusive) continue;
        if (anything_before) {
            combined =
                co_await combine(executor, team, reducer, arrived.buffer(), before_mine.buffer());
            GANTRY_CO_TRY(combined);
        } else {
            before_mine.swap(arrived);
            anything_before = true;
        }
    }
    Status stored;
    if (!exclusive)
        stored = co_await copy(executor, team, with_mine.buffer(), sink);
    else if (anything_before)
        stored = co_await copy(executor, team, before_mine.buffer(), sink);
    co_return stored;
}

}  // namespace

Task<Status> scan(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                  Reducer reducer, bool exclusive) {
    const Share share = exclusive ? Share::before : Share::up_to;
    return directly_or(executor,
                       reduce_directly(executor, team, DirectReduction(source, sink, reducer, share)),
                       by_messages(executor, team, source, sink, reducer, exclusive));
}

}  // namespace gantry::coll

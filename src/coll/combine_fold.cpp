// SPDX-License-Identifier: BSD-3-Clause
//
// Every vector goes whole to every rank that wants the result, and is combined there in the order of
// ranks.
//
//     steps 1; bytes sent per rank n (P - 1), or n to a root; memory: n P
#include "coll/combine_shares.hpp"

namespace gantry::coll {

Task<Status> fold(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer into,
                  Reducer reducer, int wants) {
    const int size = run.size(), rank = run.rank();
    if (wants != kEverybody && wants != rank) {
        Status sent = co_await send(executor, run, source, wants);
        co_return sent;
    }
    Image all;
    Status ready = all.allocate(run.team, source.count * static_cast<std::uint64_t>(size),
                                *source.layout, reducer);
    GANTRY_CO_TRY(ready);
    const p2p::Buffer room = all.buffer();
    const auto room_for = [&](int of_rank) {
        return part_of(room, source.count * static_cast<std::uint64_t>(of_rank), source.count);
    };
    InFlight messages(run);
    for (int step = 1; step < size; ++step) {
        const int from = (rank - step + size) % size;
        messages.receive(room_for(from), from);
    }
    for (int step = 1; step < size && wants == kEverybody; ++step)
        messages.send(source, (rank + step) % size);
    Status placed = co_await copy(executor, run.team, source, room_for(rank));
    run.note(std::move(placed));
    Status met = co_await messages.all(executor);
    GANTRY_CO_TRY(met);
    Result<p2p::Buffer> folded =
        co_await fold_in_order(executor, run, reducer, room, source.count, size, source.count);
    if (!folded.ok()) co_return std::move(folded).status();
    placed = co_await copy(executor, run.team, *folded, into);
    co_return placed;
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// In rank order: a rank gets its share of every vector, and combines them one after the other when all
// are there. Long shares go in pieces, the same number on every rank. Results are bit by bit those of
// one process that adds up the vectors in the order of ranks.
//
//     steps 1 per piece; bytes sent per rank n (P - 1) / P; memory: P pieces
#include "coll/combine_shares.hpp"
#include "coll/planner.hpp"

#include <algorithm>

namespace gantry::coll {
Task<Result<p2p::Buffer>> fold_in_order(Executor& executor, Run& run, Reducer reducer,
                                        p2p::Buffer room, std::uint64_t distance, int parts,
                                        std::uint64_t count) {
    p2p::Buffer folded = part_of(room, 0, count);
    for (int part = 1; part < parts; ++part) {
        const p2p::Buffer next = part_of(room, distance * static_cast<std::uint64_t>(part), count);
        Status combined = co_await combine(executor, run, reducer, folded, next);
        if (!combined.ok()) co_return combined;
        folded = next;
    }
    co_return folded;
}

Task<Status> combine_ordered(Executor& executor, Run& run, p2p::Buffer source, Shares shares,
                             p2p::Buffer into, Reducer reducer) {
    const int size = run.size(), rank = run.rank();
    const std::uint64_t elements = elements_of_piece(*source.layout, tuning_of(run.team).piece / 2);
    const std::uint64_t longest = std::min(shares.largest(), elements);
    Image all;
    Status ready = run.after(all.allocate(run.team, longest * static_cast<std::uint64_t>(size),
                                          *source.layout, reducer));
    GANTRY_CO_TRY(ready);
    const p2p::Buffer room = all.buffer();
    const auto room_for = [&](int of_rank, std::uint64_t count) {
        return part_of(room, longest * static_cast<std::uint64_t>(of_rank), count);
    };
    const auto piece_of = [&](int of_rank, std::uint64_t start) {
        const p2p::Buffer share = shares.of(source, of_rank);
        const std::uint64_t from = std::min(start, share.count);
        return part_of(share, from, std::min(elements, share.count - from));
    };
    for (std::uint64_t start = 0; start < shares.largest(); start += elements) {
        const p2p::Buffer own = piece_of(rank, start);
        InFlight messages(run);
        for (int step = 1; step < size; ++step) {
            const int from = (rank - step + size) % size;
            if (own.count > 0) messages.receive(room_for(from, own.count), from);
        }
        for (int step = 1; step < size; ++step) {
            const int to = (rank + step) % size;
            const p2p::Buffer theirs = piece_of(to, start);
            if (theirs.count > 0) messages.send(theirs, to);
        }
        Status placed = co_await copy(executor, run.team, own, room_for(rank, own.count));
        run.note(std::move(placed));
        Status met = co_await messages.all(executor);
        if (own.count == 0 || run.failed()) continue;
        Result<p2p::Buffer> folded =
            co_await fold_in_order(executor, run, reducer, room, longest, size, own.count);
        if (!folded.ok()) continue;
        placed = co_await copy(executor, run.team, *folded, part_of(into, start, own.count));
        run.note(std::move(placed));
    }
    co_return run.status();
}

}  // namespace gantry::coll

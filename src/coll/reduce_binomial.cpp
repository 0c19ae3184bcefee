// SPDX-License-Identifier: BSD-3-Clause
//
// Binomial tree: each rank collects the results of higher and higher ranges of ranks and puts its own
// on their left, so the order of ranks is kept, counted from the root of the tree. That is the rank
// that wants the result, or, of an operation that does not commute, rank 0, which sends it on.
// Long vectors go in pieces that follow each other up the tree.
//
//     steps ceil(log2 P) + pieces; bytes sent per rank n; memory: two pieces (none at a leaf)
#include "coll/planner.hpp"
#include "coll/reduce_algorithms.hpp"
#include "coll/workplace.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

// One piece: into `sink` of the rank that is `top`.
Task<Status> up_the_tree(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                         Reducer reducer, int top) {
    const int size = run.size(), relative = (run.rank() - top + size) % size;
    Image loaded, rooms[2];
    p2p::Buffer sum = source;
    bool usable = false;  // `sum` is where the reducer works
    int next = 0;
    for (int bit = 1; bit < size; bit *= 2) {
        if ((relative & bit) != 0) {
            Status sent = co_await send(executor, run, sum, (relative - bit + top) % size);
            co_return sent;
        }
        if (relative + bit >= size) continue;
        Image& room = rooms[next];
        next = 1 - next;
        if (room.address() == nullptr) {
            Status ready =
                run.after(room.allocate(run.team, source.count, *source.layout, reducer));
            GANTRY_CO_TRY(ready);
        }
        if (!usable && !works_in(run.team, source, reducer)) {
            Status ready =
                run.after(loaded.allocate(run.team, source.count, *source.layout, reducer));
            GANTRY_CO_TRY(ready);
            ready = co_await copy(executor, run.team, source, loaded.buffer());
            run.note(std::move(ready));
            sum = loaded.buffer();
        }
        usable = true;
        Status received =
            co_await receive(executor, run, room.buffer(), (relative + bit + top) % size);
        Status combined = co_await combine(executor, run, reducer, sum, room.buffer());
        sum = room.buffer();
    }
    if (run.failed()) co_return run.status();
    Status stored = co_await copy(executor, run.team, sum, sink);
    run.note(std::move(stored));
    co_return run.status();
}

}  // namespace

Task<Status> reduce_binomial(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                             Reducer reducer, int root) {
    const int top = reducer.commutative ? root : 0;
    const std::uint64_t elements = elements_of_piece(*source.layout, 2 * tuning_of(run.team).piece);
    Image apart;
    for (std::uint64_t start = 0; start < source.count; start += elements) {
        const std::uint64_t count = std::min(elements, source.count - start);
        const p2p::Buffer part = part_of(source, start, count);
        p2p::Buffer result = run.rank() == root ? part_of(sink, start, count) : p2p::Buffer{};
        if (run.rank() == top && top != root) {
            if (apart.address() == nullptr) {
                Status ready = run.after(apart.allocate(run.team, std::min(elements, source.count),
                                                        *source.layout, reducer));
                GANTRY_CO_TRY(ready);
            }
            result = apart.first(count);
        }
        Status met = co_await up_the_tree(executor, run, part, result, reducer, top);
        if (top == root) continue;
        if (run.rank() == top) {
            met = co_await send(executor, run, result, root);
        } else if (run.rank() == root) {
            met = co_await receive(executor, run, result, top);
        }
    }
    co_return run.status();
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Binomial tree. Each rank gathers the results of higher and higher ranges of ranks and puts its
// own on their left, so the order of ranks is kept; an operation that does not commute is therefore
// reduced to rank 0 and sent on to the root.
#include "coll/reduce.hpp"

#include "coll/direct_exchange.hpp"
#include "coll/direct_reduce.hpp"
#include "coll/exchange.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {
namespace {

// Into `result` of the rank that is `root` (any other's holds a part at the end).
Task<Status> reduce_tree(Executor& executor, Team team, Image* result, Reducer reducer, int root) {
    const int size = team.size();
    const int relative = (team.rank() - root + size) % size;
    const p2p::Buffer shape = result->buffer();
    Image arrived;
    FirstFailure failed;
    for (int bit = 1; bit < size; bit *= 2) {
        if ((relative & bit) != 0) {
            Status sent =
                co_await send(executor, team, result->buffer(), (relative - bit + root) % size);
            failed.note(std::move(sent));
            co_return failed.status();
        }
        if (relative + bit >= size) continue;
        Status ready = arrived.address() == nullptr
                           ? arrived.allocate(team, shape.count, *shape.layout, reducer)
                           : success();
        GANTRY_CO_TRY(ready);
        Status received =
            co_await receive(executor, team, arrived.buffer(), (relative + bit + root) % size);
        failed.note(std::move(received));
        Status combined =
            co_await combine(executor, team, reducer, result->buffer(), arrived.buffer());
        failed.note(std::move(combined));
        result->swap(arrived);
    }
    co_return failed.status();
}

}  // namespace

Task<Status> reduce_into(Executor& executor, Team team, p2p::Buffer source, Image* result,
                         Reducer reducer, int top) {
    Status ready = result->allocate(team, source.count, *source.layout, reducer);
    GANTRY_CO_TRY(ready);
    Status loaded = co_await copy(executor, team, source, result->buffer());
    GANTRY_CO_TRY(loaded);
    Status reduced = co_await reduce_tree(executor, team, result, reducer, top);
    co_return reduced;
}

namespace {

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                         Reducer reducer, int root) {
    // Elsewhere the sink means nothing.
    reducer = placed(team, source, team.rank() == root ? sink : source, reducer);
    Image result;
    const int top = reducer.commutative ? root : 0;
    Status reduced = co_await reduce_into(executor, team, source, &result, reducer, top);
    GANTRY_CO_TRY(reduced);
    if (top != root) {
        if (team.rank() == top) {
            Status sent = co_await send(executor, team, result.buffer(), root);
            co_return sent;
        }
        if (team.rank() == root) {
            Status received = co_await receive(executor, team, sink, top);
            co_return received;
        }
        co_return success();
    }
    if (team.rank() != root) co_return success();
    Status stored = co_await copy(executor, team, result.buffer(), sink);
    co_return stored;
}

}  // namespace

Task<Status> reduce(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                    Reducer reducer, int root) {
    DirectReduction direct(source, sink, reducer, Share::root);
    direct.root = root;
    return directly_or(executor, reduce_directly(executor, team, std::move(direct)),
                       by_messages(executor, team, source, sink, reducer, root));
}

}  // namespace gantry::coll

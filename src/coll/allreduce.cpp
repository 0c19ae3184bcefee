// SPDX-License-Identifier: BSD-3-Clause
//
// Three ways. Long vectors of an operation that commutes go around a ring twice, each rank reducing
// one share (bytes sent per rank: twice the vector, for any number of ranks). Else, for a power of
// two of ranks, recursive doubling: in round k neighbours at distance 2^k exchange what they have,
// the lower rank's part on the left. Else reduce to rank 0 and broadcast.
#include "coll/allreduce.hpp"

#include "coll/bcast.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/direct_reduce.hpp"
#include "coll/exchange.hpp"
#include "coll/image.hpp"
#include "coll/reduce.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {
namespace {

// Below this a ring's 2(n-1) steps cost more than its saved bytes.
constexpr Bytes kRingBytes = 64 * kKiB;

Task<Status> recursive_doubling(Executor& executor, Team team, Image* result, Reducer reducer) {
    const p2p::Buffer shape = result->buffer();
    Image arrived;
    Status ready = arrived.allocate(team, shape.count, *shape.layout, reducer);
    GANTRY_CO_TRY(ready);
    FirstFailure failed;
    for (int distance = 1; distance < team.size(); distance *= 2) {
        const int partner = team.rank() ^ distance;
        Status met =
            co_await exchange(executor, team, result->buffer(), partner, arrived.buffer(), partner);
        failed.note(std::move(met));
        Image& left = partner > team.rank() ? *result : arrived;
        Image& right = partner > team.rank() ? arrived : *result;
        Status combined = co_await combine(executor, team, reducer, left.buffer(), right.buffer());
        failed.note(std::move(combined));
        if (&right == &arrived) result->swap(arrived);
    }
    co_return failed.status();
}

// Share number `index` of a vector, counted around the ring.
p2p::Buffer share(const p2p::Buffer& vector, int index, int size) {
    const auto ranks = static_cast<std::uint64_t>(size);
    const auto number = static_cast<std::uint64_t>((index % size + size) % size);
    const std::uint64_t first = vector.count * number / ranks,
                        end = vector.count * (number + 1) / ranks;
    return {static_cast<std::byte*>(vector.address) +
                static_cast<std::ptrdiff_t>(first) * vector.layout->extent,
            end - first, vector.layout};
}

Task<Status> ring(Executor& executor, Team team, p2p::Buffer vector, Reducer reducer) {
    const int size = team.size(), rank = team.rank();
    const int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    Image arrived;
    Status ready = arrived.allocate(team, vector.count / static_cast<std::uint64_t>(size) + 1,
                                    *vector.layout, reducer);
    GANTRY_CO_TRY(ready);
    FirstFailure failed;
    for (int step = 0; step < size - 1; ++step) {
        const p2p::Buffer mine = share(vector, rank - step - 1, size);
        p2p::Buffer scratch = arrived.buffer();
        scratch.count = mine.count;
        Status met =
            co_await exchange(executor, team, share(vector, rank - step, size), to, scratch, from);
        failed.note(std::move(met));
        Status combined = co_await combine(executor, team, reducer, scratch, mine);
        failed.note(std::move(combined));
    }
    for (int step = 0; step < size - 1; ++step) {
        const p2p::Buffer finished = share(vector, rank + 1 - step, size);
        Status met =
            co_await exchange(executor, team, finished, to, share(vector, rank - step, size), from);
        failed.note(std::move(met));
    }
    co_return failed.status();
}

bool is_power_of_two(int number) {
    return (number & (number - 1)) == 0;
}

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                         Reducer reducer) {
    reducer = placed(team, source, sink, reducer);
    const int size = team.size();
    const bool long_vector = reducer.commutative && size > 2 && source.bytes() >= kRingBytes &&
                             source.count >= static_cast<std::uint64_t>(size);
    if (!long_vector && !is_power_of_two(size)) {
        Status reduced = co_await reduce(executor, team, source, sink, reducer, 0);
        FirstFailure failed;
        failed.note(std::move(reduced));
        Status told = co_await bcast(executor, team, sink, 0);
        failed.note(std::move(told));
        co_return failed.status();
    }
    Image result;
    Status ready;
    // Recursive doubling swaps its buffers, so only the ring works in the program's.
    const bool in_sink = long_vector && works_in(team, sink, reducer);
    if (in_sink)
        result.borrow(sink);
    else
        ready = result.allocate(team, source.count, *source.layout, reducer);
    GANTRY_CO_TRY(ready);
    Status loaded = co_await copy(executor, team, source, result.buffer());
    GANTRY_CO_TRY(loaded);
    Status reduced;
    if (long_vector)
        reduced = co_await ring(executor, team, result.buffer(), reducer);
    else
        reduced = co_await recursive_doubling(executor, team, &result, reducer);
    GANTRY_CO_TRY(reduced);
    if (in_sink) co_return success();
    Status stored = co_await copy(executor, team, result.buffer(), sink);
    co_return stored;
}

}  // namespace

Task<Status> allreduce(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                       Reducer reducer) {
    return directly_or(
        executor,
        reduce_directly(executor, team, DirectReduction(source, sink, reducer, Share::all)),
        by_messages(executor, team, source, sink, reducer));
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions: the right result on every rank, for short and long vectors, in host and device
// memory, in place, and in rank order for operations that do not commute.
#include "coll/allreduce.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "affine.hpp"
#include "collective_world.hpp"
#include "number_sum.hpp"

#include <numeric>

namespace gantry::coll {
namespace {

// Of ranks 0..last in order.
Affine composed_up_to(int last, std::size_t index) {
    std::vector<int> ranks(static_cast<std::size_t>(last) + 1);
    std::iota(ranks.begin(), ranks.end(), 0);
    return composed(ranks, index);
}

Number summand(int rank, std::size_t index) {
    return rank * 1000 + static_cast<Number>(index);
}
Number total(int ranks, std::size_t index) {
    return 1000 * ranks * (ranks - 1) / 2 + ranks * static_cast<Number>(index);
}

struct Case {
    Place place;
    std::size_t count;
};

Task<Status> sums(Executor& executor, Rank& rank, Case test) {
    Everybody everybody(rank);
    const int ranks = everybody.size();
    Array<Number> source(rank, test.place, test.count), sink(rank, test.place, test.count);
    for (std::size_t i = 0; i < test.count; ++i)
        source[i] = summand(rank.number, i);
    Status stored = co_await source.store(executor);
    GANTRY_CO_TRY(stored);
    const Reducer how = sum();
    Status met =
        co_await allreduce(executor, everybody.team(), source.buffer(), sink.buffer(), how);
    GANTRY_CO_TRY(met);
    Status loaded = co_await sink.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(sink[i] == total(ranks, i));

    for (int root = 0; root < ranks; ++root) {
        met =
            co_await reduce(executor, everybody.team(), source.buffer(), sink.buffer(), how, root);
        GANTRY_CO_TRY(met);
        loaded = co_await sink.load(executor);
        GANTRY_CO_TRY(loaded);
        for (std::size_t i = 0; i < test.count && rank.number == root; ++i)
            WORLD_CHECK(sink[i] == total(ranks, i));
    }
    // In place, and the source of the other calls must have stayed as it was.
    loaded = co_await source.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(source[i] == summand(rank.number, i));
    met = co_await allreduce(executor, everybody.team(), source.buffer(), source.buffer(), how);
    GANTRY_CO_TRY(met);
    loaded = co_await source.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(source[i] == total(ranks, i));
    co_return success();
}

Task<Status> shares(Executor& executor, Rank& rank, Case test) {
    Everybody everybody(rank);
    const int ranks = everybody.size();
    const std::size_t whole = test.count * static_cast<std::size_t>(ranks);
    Array<Number> source(rank, test.place, whole), sink(rank, test.place, test.count);
    for (std::size_t i = 0; i < whole; ++i)
        source[i] = summand(rank.number, i);
    Status stored = co_await source.store(executor);
    GANTRY_CO_TRY(stored);
    Blocks blocks;
    blocks.layout = &source.layout();
    for (int to = 0; to < ranks; ++to) {
        blocks.counts.push_back(static_cast<std::int64_t>(test.count));
        blocks.displacements.push_back(static_cast<std::int64_t>(test.count) * to);
    }
    const Reducer how = sum();
    Status met = co_await reduce_scatter(executor, everybody.team(), source.buffer(), blocks,
                                         sink.buffer(), how);
    GANTRY_CO_TRY(met);
    Status loaded = co_await sink.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(sink[i] ==
                    total(ranks, static_cast<std::size_t>(rank.number) * test.count + i));
    co_return success();
}

Task<Status> compositions(Executor& executor, Rank& rank, Case test) {
    Everybody everybody(rank);
    const int last = everybody.size() - 1;
    Array<Affine> source(rank, test.place, test.count), sink(rank, test.place, test.count);
    for (std::size_t i = 0; i < test.count; ++i)
        source[i] = of_process(rank.number, i);
    Status stored = co_await source.store(executor);
    GANTRY_CO_TRY(stored);
    const Reducer how = composition();
    Status met =
        co_await allreduce(executor, everybody.team(), source.buffer(), sink.buffer(), how);
    GANTRY_CO_TRY(met);
    Status loaded = co_await sink.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(sink[i] == composed_up_to(last, i));
    for (int root = 0; root <= last; ++root) {
        met =
            co_await reduce(executor, everybody.team(), source.buffer(), sink.buffer(), how, root);
        GANTRY_CO_TRY(met);
        loaded = co_await sink.load(executor);
        GANTRY_CO_TRY(loaded);
        for (std::size_t i = 0; i < test.count && rank.number == root; ++i)
            WORLD_CHECK(sink[i] == composed_up_to(last, i));
    }
    for (std::size_t i = 0; i < test.count; ++i)
        sink[i] = Affine{1, 99};
    stored = co_await sink.store(executor);
    GANTRY_CO_TRY(stored);
    met = co_await scan(executor, everybody.team(), source.buffer(), sink.buffer(), how, true);
    GANTRY_CO_TRY(met);
    loaded = co_await sink.load(executor);
    GANTRY_CO_TRY(loaded);
    const Affine untouched{1, 99};
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(sink[i] == (rank.number == 0 ? untouched : composed_up_to(rank.number - 1, i)));
    met = co_await scan(executor, everybody.team(), source.buffer(), sink.buffer(), how, false);
    GANTRY_CO_TRY(met);
    loaded = co_await sink.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(sink[i] == composed_up_to(rank.number, i));
    co_return success();
}

class Reductions : public ::testing::TestWithParam<Case> {};

TEST_P(Reductions, SumOnEveryRankAndRootAndInPlace) {
    expect_good([test = GetParam()](Rank& rank) { return sums(rank.executor, rank, test); });
}
TEST_P(Reductions, ShareTheSumBetweenTheRanks) {
    expect_good([test = GetParam()](Rank& rank) { return shares(rank.executor, rank, test); });
}
TEST_P(Reductions, KeepTheOrderOfRanksWhenItMatters) {
    expect_good(
        [test = GetParam()](Rank& rank) { return compositions(rank.executor, rank, test); });
}
// The longest takes the ring, also with a number of elements that the ranks do not divide.
INSTANTIATE_TEST_SUITE_P(Sizes, Reductions,
                         ::testing::Values(Case{Place::host, 1}, Case{Place::host, 300},
                                           Case{Place::host, 8209}, Case{Place::device, 1},
                                           Case{Place::device, 8209}, Case{Place::device, 60001}));

}  // namespace
}  // namespace gantry::coll

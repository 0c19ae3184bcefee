// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives that move data: every block arrives where it belongs, between all kinds of memory.
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/gather.hpp"
#include "collective_world.hpp"

namespace gantry::coll {
namespace {

using Number = std::int64_t;

// What rank `rank` has at `index` for rank `other`.
Number value(int rank, int other, std::size_t index) {
    return Number{rank} * 1'000'000'000 + Number{other} * 1'000'000 + static_cast<Number>(index);
}

struct Case {
    Place place;
    std::size_t count;
};

Task<Status> broadcasts(Executor& executor, Rank& rank, Case test) {
    Everybody everybody(rank);
    for (int root = 0; root < everybody.size(); ++root) {
        Array<Number> data(rank, test.place, test.count);
        for (std::size_t i = 0; i < test.count; ++i)
            data[i] = rank.number == root ? value(root, 0, i) : -1;
        Status stored = co_await data.store(executor);
        GANTRY_CO_TRY(stored);
        Status told = co_await bcast(executor, everybody.team(), data.buffer(), root);
        GANTRY_CO_TRY(told);
        Status loaded = co_await data.load(executor);
        GANTRY_CO_TRY(loaded);
        for (std::size_t i = 0; i < test.count; ++i)
            WORLD_CHECK(data[i] == value(root, 0, i));
    }
    co_return success();
}

Task<Status> gathers_and_scatters(Executor& executor, Rank& rank, Case test) {
    Everybody everybody(rank);
    const auto ranks = static_cast<std::size_t>(everybody.size());
    for (int root = 0; root < everybody.size(); ++root) {
        Array<Number> mine(rank, test.place, test.count), all(rank, test.place, test.count * ranks);
        for (std::size_t i = 0; i < test.count; ++i)
            mine[i] = value(rank.number, root, i);
        Status stored = co_await mine.store(executor);
        GANTRY_CO_TRY(stored);
        Status met = co_await gather(executor, everybody.team(), mine.buffer(),
                                     equal_blocks(all, test.count), root, false);
        GANTRY_CO_TRY(met);
        Status loaded = co_await all.load(executor);
        GANTRY_CO_TRY(loaded);
        if (rank.number == root) {
            for (int from = 0; from < everybody.size(); ++from)
                for (std::size_t i = 0; i < test.count; ++i)
                    WORLD_CHECK(all[static_cast<std::size_t>(from) * test.count + i] ==
                                value(from, root, i));
        }
        Array<Number> back(rank, test.place, test.count);
        met = co_await scatter(executor, everybody.team(), equal_blocks(all, test.count),
                               back.buffer(), root, false);
        GANTRY_CO_TRY(met);
        loaded = co_await back.load(executor);
        GANTRY_CO_TRY(loaded);
        for (std::size_t i = 0; i < test.count; ++i)
            WORLD_CHECK(back[i] == value(rank.number, root, i));
    }
    co_return success();
}

Task<Status> exchanges(Executor& executor, Rank& rank, Case test) {
    Everybody everybody(rank);
    const auto ranks = static_cast<std::size_t>(everybody.size());
    Array<Number> out(rank, test.place, test.count * ranks),
        in(rank, test.place, test.count * ranks);
    for (int to = 0; to < everybody.size(); ++to)
        for (std::size_t i = 0; i < test.count; ++i)
            out[static_cast<std::size_t>(to) * test.count + i] = value(rank.number, to, i);
    Status stored = co_await out.store(executor);
    GANTRY_CO_TRY(stored);
    Status met = co_await alltoall(executor, everybody.team(), equal_blocks(out, test.count),
                                   equal_blocks(in, test.count));
    GANTRY_CO_TRY(met);
    met = co_await alltoall_in_place(executor, everybody.team(), equal_blocks(out, test.count));
    GANTRY_CO_TRY(met);
    for (Array<Number>* result : {&in, &out}) {
        Status loaded = co_await result->load(executor);
        GANTRY_CO_TRY(loaded);
        for (int from = 0; from < everybody.size(); ++from)
            for (std::size_t i = 0; i < test.count; ++i)
                WORLD_CHECK((*result)[static_cast<std::size_t>(from) * test.count + i] ==
                            value(from, rank.number, i));
    }
    co_return success();
}

// Rank r contributes r + 1 numbers, with a gap of one before each block.
Task<Status> uneven_allgathers(Executor& executor, Rank& rank, Place place) {
    Everybody everybody(rank);
    Blocks blocks;
    std::int64_t end = 0;
    for (int from = 0; from < everybody.size(); ++from) {
        blocks.counts.push_back(from + 1);
        blocks.displacements.push_back(end + 1);
        end += from + 2;
    }
    Array<Number> mine(rank, place, static_cast<std::size_t>(rank.number) + 1);
    Array<Number> all(rank, place, static_cast<std::size_t>(end));
    for (std::size_t i = 0; i < mine.host().size(); ++i)
        mine[i] = value(rank.number, 0, i);
    for (Number& number : all.host())
        number = -7;
    blocks.address = all.address();
    blocks.layout = &all.layout();
    Status stored = co_await mine.store(executor);
    GANTRY_CO_TRY(stored);
    stored = co_await all.store(executor);
    GANTRY_CO_TRY(stored);
    Status met = co_await allgather(executor, everybody.team(), mine.buffer(), blocks, false);
    GANTRY_CO_TRY(met);
    Status loaded = co_await all.load(executor);
    GANTRY_CO_TRY(loaded);
    for (int from = 0; from < everybody.size(); ++from) {
        const auto first =
            static_cast<std::size_t>(blocks.displacements[static_cast<std::size_t>(from)]);
        WORLD_CHECK(all[first - 1] == -7);
        for (std::size_t i = 0; i <= static_cast<std::size_t>(from); ++i)
            WORLD_CHECK(all[first + i] == value(from, 0, i));
    }
    co_return success();
}

class Movement : public ::testing::TestWithParam<Case> {};

TEST_P(Movement, BroadcastReachesEverybodyFromEveryRoot) {
    expect_good([test = GetParam()](Rank& rank) { return broadcasts(rank.executor, rank, test); });
}
TEST_P(Movement, GatherAndScatterAreInverse) {
    expect_good([test = GetParam()](Rank& rank) {
        return gathers_and_scatters(rank.executor, rank, test);
    });
}
TEST_P(Movement, AllToAllTransposesInPlaceToo) {
    expect_good([test = GetParam()](Rank& rank) { return exchanges(rank.executor, rank, test); });
}
INSTANTIATE_TEST_SUITE_P(Sizes, Movement,
                         ::testing::Values(Case{Place::host, 1}, Case{Place::host, 9000},
                                           Case{Place::device, 1}, Case{Place::device, 9000}));

TEST(Allgather, OfUnevenBlocksLeavesTheGapsAlone) {
    expect_good([](Rank& rank) { return uneven_allgathers(rank.executor, rank, Place::host); });
    expect_good([](Rank& rank) { return uneven_allgathers(rank.executor, rank, Place::device); });
}

// Each rank says when it entered; nobody may leave before the last has entered.
struct Times {
    std::vector<Nanoseconds> entered, left;
};
Task<Status> meet_late(Executor& executor, Rank& rank, Times* times) {
    Everybody everybody(rank);
    const auto me = static_cast<std::size_t>(rank.number);
    Status slept = co_await rank.sleep(executor, rank.number * 50 * kMicrosecond);
    GANTRY_CO_TRY(slept);
    times->entered[me] = executor.now();
    Status met = co_await barrier(executor, everybody.team());
    times->left[me] = executor.now();
    co_return met;
}

TEST(Barrier, LetsNobodyLeaveBeforeTheLastHasEntered) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
        world::Options options;
        options.ranks = ranks;
        world::World world(options);
        Times times;
        times.entered.resize(static_cast<std::size_t>(ranks));
        times.left.resize(static_cast<std::size_t>(ranks));
        const world::Ending ending =
            world.run([&times](Rank& rank) { return meet_late(rank.executor, rank, &times); });
        ASSERT_TRUE(ending.good()) << ending;
        const Nanoseconds last = *std::max_element(times.entered.begin(), times.entered.end());
        for (Nanoseconds left : times.left)
            EXPECT_GE(left, last);
    }
}

}  // namespace
}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Long collectives of host memory in one node: ranks read the memory of each other, and send nothing; and the
// way back to messages where they may not.
#include "direct_exchanges.hpp"
#include "direct_reductions.hpp"

namespace gantry::coll {
namespace {

constexpr Bytes kLong = 100 * kKiB + 4;
constexpr std::size_t kNumbers = 20'001;  // several pieces, and shares that are not equal
constexpr Bytes kPiece = 16 * kKiB;

// A node whose ranks may read the memory of each other.
void reading(world::Options& options) {
    options.mechanisms = "all";
    options.change_machine = [](model::Machine& machine) {
        machine.shared_memory.read_latency = 500;
        machine.shared_memory.read_rate = model::Rate(1e10);
    };
    options.change_config = [](config::Config& config) { config.coll_piece = kPiece; };
}

direct_exchanges::Trial exchange_of(int ranks) {
    return {.ranks = ranks,
            .bytes = kLong,
            .fixed = plan::Algorithm::reads,
            .places = [](int) { return std::pair(Place::host, Place::host); },
            .change = reading};
}

direct_reductions::Trial reduction_of(int ranks) {
    return {.ranks = ranks,
            .count = kNumbers,
            .place = Place::host,
            .fixed = plan::Algorithm::reads,
            .change = reading};
}

TEST(HostReads, MoveEachBlockOnceWithoutAMessage) {
    using namespace direct_exchanges;
    for (const int ranks : {2, 3, 5})
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
            const Trial test = exchange_of(ranks);
            const auto pairs = static_cast<Bytes>(ranks * (ranks - 1) * test.rounds);
            for (const Operations operations : {&alltoalls, &allgathers}) {
                const NodeCosts costs = run(operations, test, seed);
                EXPECT_EQ(costs.messages, 0u) << ranks;
                EXPECT_EQ(costs.read, pairs * kLong) << ranks;
            }
            const NodeCosts told = run(&bcasts, test, seed);
            EXPECT_EQ(told.messages, 0u) << ranks;
            EXPECT_EQ(told.read, static_cast<Bytes>(test.rounds * (ranks - 1)) * kLong) << ranks;
            EXPECT_EQ(run(&with_a_root, test, seed).messages, 0u) << ranks;
        }
}

TEST(HostReads, MoveUnequalBlocksSomeOfWhichLieInCells) {
    using namespace direct_exchanges;
    for (const int ranks : {2, 3, 5})
        for (const Bytes bytes : {Bytes{1500}, kLong}) {
            Trial test = exchange_of(ranks);
            test.bytes = bytes;
            test.unequal = true;
            for (const Operations operations : {&alltoalls, &allgathers, &with_a_root})
                EXPECT_EQ(run(operations, test).messages, 0u) << ranks << " ranks, " << bytes;
        }
}

TEST(HostReads, LeaveBlocksInPlaceWhereNobodyReadsThem) {
    using namespace direct_exchanges;
    for (const int ranks : {2, 3}) {
        Trial test = exchange_of(ranks);
        test.in_place = true;
        EXPECT_EQ(run(&allgathers, test).messages, 0u) << ranks;
        EXPECT_EQ(run(&with_a_root, test).messages, 0u) << ranks;
        // Pairs swap theirs.
        EXPECT_GT(run(&alltoalls, test).messages, 0u) << ranks;
        EXPECT_EQ(run(&alltoalls, test).read, 0u) << ranks;
    }
}

TEST(HostReads, EndInDeviceMemoryToo) {
    using namespace direct_exchanges;
    Trial test = exchange_of(3);
    test.places = [](int rank) {
        return std::pair(Place::host, rank == 1 ? Place::device : Place::host);
    };
    for (const Operations operations : {&alltoalls, &allgathers, &bcasts})
        EXPECT_EQ(run(operations, test).messages, 0u);
}

// Whoever sends from device memory has no other rank read there.
TEST(HostReads, AreNoneWhereARankSendsFromADevice) {
    using namespace direct_exchanges;
    Trial test = exchange_of(3);
    test.places = [](int rank) {
        return std::pair(rank == 1 ? Place::device : Place::host, Place::host);
    };
    for (const Operations operations : {&alltoalls, &allgathers}) {
        const NodeCosts costs = run(operations, test);
        EXPECT_GT(costs.messages, 0u);
    }
}

TEST(HostReads, ReduceWhatEachRankReads) {
    using namespace direct_reductions;
    for (const int ranks : {2, 3, 4, 7})
        for (const bool in_place : {false, true})
            for (std::uint64_t seed = 1; seed <= 2; ++seed) {
                Trial trial = reduction_of(ranks);
                trial.in_place = in_place;
                const NodeCosts all = run(&allreduces, trial, seed);
                EXPECT_EQ(all.messages, 0u) << ranks;
                const Bytes vector = kNumbers * sizeof(Number);
                const auto others = static_cast<Bytes>(ranks - 1);
                // In place each tries to read a byte of every other vector first.
                const Bytes tried = in_place ? others * static_cast<Bytes>(ranks) : 0;
                EXPECT_EQ(all.read, 3 * (2 * others * vector + tried)) << ranks;
                for (const Operations operations : {&reduces, &reduce_scatters, &scans})
                    EXPECT_EQ(run(operations, trial, seed).messages, 0u) << ranks;
            }
}

TEST(HostReads, HaveAShareOfNothingWhereRanksAreManyAndNumbersFew) {
    using namespace direct_reductions;
    Trial trial = reduction_of(7);
    trial.change = [](world::Options& options) {
        reading(options);
        options.change_config = [](config::Config& config) { config.coll_piece = 1; };
    };
    trial.count = 600;
    for (const Operations operations : {&allreduces, &reduces, &reduce_scatters, &scans})
        EXPECT_EQ(run(operations, trial).messages, 0u);
}

// The system refuses one rank: all know it when they meet.
TEST(HostReads, AreNoneWhereTheSystemRefusesThemToOneRank) {
    for (const int refused : {0, 2}) {
        const auto change = [refused](world::Options& options) {
            reading(options);
            options.reads = [refused](int rank) { return rank != refused; };
        };
        direct_exchanges::Trial moves = exchange_of(3);
        moves.change = change;
        for (const auto operations : {&direct_exchanges::alltoalls, &direct_exchanges::bcasts}) {
            moves.fixed = plan::Algorithm::reads;
            EXPECT_GT(run(operations, moves).messages, 0u) << refused;
        }
        direct_reductions::Trial reduces = reduction_of(3);
        reduces.change = change;
        EXPECT_GT(run(&direct_reductions::allreduces, reduces).messages, 0u) << refused;
    }
}

// What cannot be read although it may be, at the first read or a later one: all ranks go by messages.
TEST(HostReads, GoByMessagesWhereAReadIsRefused) {
    for (int good = 0; good < 8; ++good)
        for (const int unlucky : {0, 2}) {
            const auto change = [=](world::Options& options) {
                reading(options);
                options.refuse_read = [=, reads = 0](int rank) mutable {
                    return rank == unlucky && reads++ == good;
                };
            };
            direct_exchanges::Trial moves = exchange_of(3);
            moves.rounds = 2;
            moves.change = change;
            for (const auto operations :
                 {&direct_exchanges::alltoalls, &direct_exchanges::allgathers,
                  &direct_exchanges::bcasts, &direct_exchanges::with_a_root})
                run(operations, moves);
            direct_reductions::Trial reductions = reduction_of(3);
            reductions.change = change;
            for (const auto operations :
                 {&direct_reductions::allreduces, &direct_reductions::reduces,
                  &direct_reductions::reduce_scatters, &direct_reductions::scans})
                run(operations, reductions);
        }
}

// Rank 1 takes less than rank 0 sends, and rank 2 may not read.
Task<Status> fail_differently(Rank& rank, Status& ended) {
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(plan::Algorithm::reads);
    direct_exchanges::Bytebuffer from(rank, Place::host, 3 * kLong),
        into(rank, Place::host, 3 * kLong);
    const direct_exchanges::Parts parts =
        direct_exchanges::parts(3, true, [](int) { return kLong - 3; });
    Blocks outgoing = parts.in(from, true), incoming = parts.in(into, true);
    if (rank.number == 1) incoming.counts[0] /= 2;
    ended = co_await alltoall(rank.executor, everybody.team(), outgoing, incoming);
    co_return success();
}

// All ranks go another way or none does: who could not read does not exchange messages without the others.
TEST(HostReads, FailOnAllRanksWhereOneFailsAndAnotherMayNotRead) {
    world::Options options{.machine = "h200", .ranks = 3, .ranks_per_node = 3};
    reading(options);
    options.refuse_read = [](int rank) { return rank == 2; };
    std::vector<Status> ended(3);
    world::World world(options);
    const world::Ending ending = world.run([&](Rank& rank) {
        return fail_differently(rank, ended[static_cast<std::size_t>(rank.number)]);
    });
    ASSERT_TRUE(ending.good()) << ending;
    for (const Status& each : ended)
        EXPECT_EQ(each.error_class(), MPI_ERR_TRUNCATE) << each.text();
}

Task<Status> one_allreduce(Rank& rank, Status& ended) {
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(plan::Algorithm::reads);
    const direct_reductions::Trial trial = reduction_of(3);
    direct_reductions::Numbers numbers(rank, trial, trial.count);
    numbers.fill();
    ended = co_await allreduce(rank.executor, everybody.team(), numbers.buffer(), numbers.buffer(),
                               sum());
    co_return success();
}

// In place there is no way back once a result has replaced its vector: then every rank hears of it.
TEST(HostReads, ThatFailInPlaceAreAnErrorOnAllRanksOrGoByMessages) {
    int errors = 0;
    for (int good = 0; good < 16; ++good) {
        world::Options options{.machine = "h200", .ranks = 3, .ranks_per_node = 3};
        reading(options);
        options.refuse_read = [=, reads = 0](int rank) mutable {
            return rank == 1 && reads++ == good;
        };
        std::vector<Status> ended(3);
        world::World world(options);
        const world::Ending ending = world.run([&](Rank& rank) {
            return one_allreduce(rank, ended[static_cast<std::size_t>(rank.number)]);
        });
        ASSERT_TRUE(ending.good()) << good << ": " << ending;
        EXPECT_EQ(ended[0].ok(), ended[1].ok()) << good;
        EXPECT_EQ(ended[1].ok(), ended[2].ok()) << good;
        if (ended[1].ok()) continue;
        ++errors;
        EXPECT_EQ(ended[1].error_class(), MPI_ERR_OTHER) << ended[1].text();
    }
    EXPECT_GT(errors, 0);
}

// A rank that brings a failure may still read, and others read from it in the next operation.
Task<Status> fail_once(Rank& rank) {
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(plan::Algorithm::reads);
    const Status before = failure(MPI_ERR_OTHER, "of an operation before");
    Team team = everybody.team();
    if (rank.number == 1) team.before = &before;
    direct_exchanges::Bytebuffer mine(rank, Place::host, kLong), all(rank, Place::host, 3 * kLong);
    Blocks blocks;
    blocks.address = all.address();
    blocks.count = kLong;
    blocks.layout = all.whole().layout;
    const Status ended = co_await allgather(rank.executor, team, mine.whole(), blocks, false);
    WORLD_CHECK(!ended.ok());
    Status next = co_await allgather(rank.executor, everybody.team(), mine.whole(), blocks, false);
    co_return next;
}

TEST(HostReads, AreNotGivenUpForAFailureOfAnotherKind) {
    world::Options options{.machine = "h200", .ranks = 3, .ranks_per_node = 3};
    reading(options);
    world::World world(options);
    const world::Ending ending = world.run(fail_once);
    EXPECT_TRUE(ending.good()) << ending;
    Bytes read = 0;
    for (const transport::fake::TraceRow& row : world.shared_memory().trace())
        if (row.kind == transport::fake::kRead) read += row.payload_bytes;
    EXPECT_EQ(read, 3 * 2 * kLong);
}

TEST(HostReads, EndWhenARankDies) {
    for (Nanoseconds time = 0; time < 120 * kMicrosecond; time += 5 * kMicrosecond) {
        world::Options options{.machine = "h200", .ranks = 3, .ranks_per_node = 3};
        reading(options);
        world::World world(options);
        world.kill_at(time, 1);
        std::vector<Status> ended(3);
        const world::Ending ending = world.run([&](Rank& rank) {
            return one_allreduce(rank, ended[static_cast<std::size_t>(rank.number)]);
        });
        ASSERT_TRUE(ending.good()) << "death at " << time << " ns: " << ending;
        for (const int rank : {0, 2})
            EXPECT_TRUE(ended[static_cast<std::size_t>(rank)].ok() ||
                        ended[static_cast<std::size_t>(rank)].error_class() == MPI_ERR_PROC_ABORTED)
                << ended[static_cast<std::size_t>(rank)].text();
    }
}

}  // namespace
}  // namespace gantry::coll

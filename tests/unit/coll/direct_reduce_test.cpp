// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions between ranks of one node without messages: kernels that read the vectors of all ranks,
// and cells of the node segment for short vectors in host memory.
#include "direct_reductions.hpp"

namespace gantry::coll {
namespace {

using namespace direct_reductions;

// Too long for a cell; half a MiB of numbers.
constexpr std::size_t kShort = 600, kLong = 64 * 1024;

TEST(DirectReduction, IsOneLaunchARankForShortVectors) {
    for (const int ranks : {2, 3, 4})
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
            const NodeCosts costs = run(&allreduces, {.ranks = ranks, .count = kShort}, seed);
            EXPECT_EQ(costs.reductions, static_cast<std::uint64_t>(3 * ranks)) << ranks;
            EXPECT_EQ(costs.launches + costs.staged + costs.messages, 0u) << ranks;
            const NodeCosts to_root = run(&reduces, {.ranks = ranks, .count = kShort}, seed);
            EXPECT_EQ(to_root.reductions, static_cast<std::uint64_t>(ranks)) << ranks;
            EXPECT_EQ(to_root.staged + to_root.messages, 0u) << ranks;
            const NodeCosts parts = run(&reduce_scatters, {.ranks = ranks, .count = kShort}, seed);
            EXPECT_EQ(parts.reductions, static_cast<std::uint64_t>(ranks)) << ranks;
            EXPECT_EQ(parts.staged + parts.messages, 0u) << ranks;
            const NodeCosts before = run(&scans, {.ranks = ranks, .count = kShort}, seed);
            EXPECT_EQ(before.staged + before.messages, 0u) << ranks;
        }
}

TEST(DirectReduction, GivesAShareToEachForLongVectorsAndInPlace) {
    for (const int ranks : {2, 3, 4})
        for (const bool in_place : {false, true}) {
            const Trial trial{.ranks = ranks,
                              .count = kLong,
                              .in_place = in_place,
                              .fixed = plan::Algorithm::two_shots};
            const NodeCosts costs = run(&allreduces, trial);
            EXPECT_EQ(costs.reductions, static_cast<std::uint64_t>(3 * ranks)) << ranks;
            EXPECT_EQ(costs.launches + costs.staged + costs.messages, 0u) << ranks;
            EXPECT_EQ(run(&reduces, trial).messages, 0u) << ranks;
            const Trial few{
                .ranks = ranks, .count = 1, .in_place = true, .fixed = plan::Algorithm::two_shots};
            EXPECT_EQ(run(&allreduces, few).messages, 0u) << ranks;
        }
}

TEST(DirectReduction, PutsResultsAsideThatAreInTheWayInPlace) {
    for (const int ranks : {2, 3, 5})
        for (const int gpus : {1, 8})
            for (const std::size_t count : {kShort, kLong})
                for (const Operations operations : {&reduce_scatters, &scans}) {
                    const Trial trial{
                        .ranks = ranks, .gpus = gpus, .count = count, .in_place = true};
                    const NodeCosts costs = run(operations, trial);
                    EXPECT_EQ(costs.staged + costs.messages, 0u) << ranks << " of " << count;
                }
}

TEST(DirectReduction, CopiesVectorsThatCannotBeMapped) {
    for (const int ranks : {2, 3})
        for (const bool in_place : {false, true})
            for (const std::size_t count : {kShort, kLong})
                for (const Operations operations :
                     {&allreduces, &reduces, &reduce_scatters, &scans}) {
                    const NodeCosts costs = run(operations, {.ranks = ranks,
                                                             .count = count,
                                                             .in_place = in_place,
                                                             .ipc = device::IpcKind::none});
                    EXPECT_EQ(costs.staged + costs.messages, 0u) << ranks << " of " << count;
                }
}

// Of two ranks both ways move the same bytes; a share to each saves most of them where there are more.
TEST(DirectReduction, SharesLongVectorsAmongManyRanks) {
    constexpr Bytes kVector = 4 * kLong * sizeof(Number);
    for (const int ranks : {2, 7}) {
        const NodeCosts costs = run(&allreduces, {.ranks = ranks, .count = 4 * kLong});
        const auto each = static_cast<std::uint64_t>(ranks);
        EXPECT_EQ(costs.reductions, 3 * each) << ranks;
        EXPECT_EQ(costs.reduced, 3 * kVector * (ranks == 2 ? each : 1)) << ranks;
        EXPECT_EQ(costs.launches + costs.staged + costs.messages, 0u) << ranks;
    }
}

TEST(DirectReduction, GoesOnWhereRanksShareAGpu) {
    for (const int gpus : {1, 2})
        for (const std::size_t count : {kShort, kLong})
            for (const Operations operations : {&allreduces, &reduces, &reduce_scatters, &scans})
                EXPECT_EQ(run(operations, {.ranks = 4, .gpus = gpus, .count = count}).messages, 0u);
}

TEST(DirectReduction, ReadsShortHostVectorsFromCells) {
    for (const int ranks : {2, 3, 8})
        for (const bool in_place : {false, true})
            for (const Operations operations : {&allreduces, &reduces, &reduce_scatters, &scans}) {
                const Trial trial{
                    .ranks = ranks, .count = 20, .in_place = in_place, .place = Place::host};
                EXPECT_EQ(run(operations, trial).messages, 0u) << ranks;
            }
}

// What a rank asks for itself alone is no call.
Task<Status> explained(Rank& rank, const Trial& trial) {
    Status done = co_await allreduces(rank, trial);
    GANTRY_CO_TRY(done);
    const std::string text = rank.explain.text(rank.number);
    const std::size_t row = text.find("allreduce ");
    WORLD_CHECK(row != std::string::npos);
    WORLD_CHECK(text.find("allreduce ", row + 1) == std::string::npos);
    WORLD_CHECK(text.find("3 calls", row) != std::string::npos);
    co_return success();
}

TEST(DirectReduction, IsExplainedOncePerCall) {
    for (const Place place : {Place::host, Place::device})
        for (const plan::Algorithm fixed :
             {plan::Algorithm::automatic, plan::Algorithm::cells, plan::Algorithm::one_shot})
            run(&explained, {.ranks = 3, .count = 20, .place = place, .fixed = fixed});
}

// A copy out of the GPU and one into it; the processor reduces.
TEST(DirectReduction, PutsShortDeviceVectorsIntoCells) {
    for (const int ranks : {2, 3, 8})
        for (const bool in_place : {false, true})
            for (const device::IpcKind ipc : {device::IpcKind::legacy, device::IpcKind::none})
                for (const Operations operations :
                     {&allreduces, &reduces, &reduce_scatters, &scans}) {
                    const Trial trial{.ranks = ranks,
                                      .count = 20,
                                      .in_place = in_place,
                                      .ipc = ipc,
                                      .fixed = plan::Algorithm::cells};
                    const NodeCosts costs = run(operations, trial);
                    EXPECT_EQ(costs.reductions + costs.launches + costs.messages, 0u) << ranks;
                    EXPECT_GE(costs.staged, static_cast<std::uint64_t>(ranks)) << ranks;
                }
}

TEST(DirectReduction, ShortVectorsOfSeveralKindsMeetInCells) {
    for (const Place first : {Place::host, Place::pinned})
        for (const Operations operations : {&allreduces, &reduces, &reduce_scatters, &scans}) {
            const Trial device{.ranks = 4, .count = 20};
            Trial host = device;
            host.place = first;
            World world({.machine = "h200", .ranks = 4, .ranks_per_node = 4, .seed = 1});
            const Ending ending = world.run(
                [&](Rank& rank) { return operations(rank, rank.number % 2 == 0 ? host : device); });
            EXPECT_TRUE(ending.good()) << ending;
        }
}

TEST(DirectReduction, GoesByMessagesWhereMemoryCannotBeMapped) {
    const auto refuse = [](Rank& rank) { rank.device.faults.refuse_ipc_open = rank.number == 1; };
    for (const int ranks : {2, 3})
        for (const bool in_place : {false, true})
            for (const std::size_t count : {kShort, kLong})
                for (const Operations operations :
                     {&allreduces, &reduces, &reduce_scatters, &scans}) {
                    run(operations,
                        {.ranks = ranks, .count = count, .in_place = in_place, .prepare = refuse});
                    run(operations, {.ranks = ranks,
                                     .count = count,
                                     .in_place = in_place,
                                     .ipc = device::IpcKind::none});
                }
}

Task<Status> with_a_death(Rank& rank, const Trial& trial, int& ended) {
    Everybody everybody(rank);
    Numbers source(rank, trial, trial.count), sink(rank, trial, trial.count);
    source.fill();
    Status met;
    for (int round = 0; round < 1000 && met.ok(); ++round)
        met = co_await allreduce(rank.executor, everybody.team(), source.buffer(), sink.buffer(),
                                 sum());
    ++ended;
    WORLD_CHECK(met.error_class() == MPI_ERR_PROC_ABORTED);
    co_return success();
}

TEST(DirectReduction, EndsWhenARankDies) {
    for (const std::size_t count : {kShort, kLong})
        for (Nanoseconds time = 0; time < 200 * kMicrosecond; time += 7 * kMicrosecond) {
            int ended = 0;
            World world({.machine = "h200", .ranks = 3, .ranks_per_node = 3, .seed = 1});
            world.kill_at(time, 1);
            const Trial trial{.ranks = 3, .count = count};
            const Ending ending =
                world.run([&](Rank& rank) { return with_a_death(rank, trial, ended); });
            ASSERT_TRUE(ending.good()) << "death at " << time << " ns: " << ending;
            ASSERT_EQ(ended, 2) << "death at " << time << " ns";
        }
}

}  // namespace
}  // namespace gantry::coll

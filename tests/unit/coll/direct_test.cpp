// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges between ranks of one node without messages: by stores into mapped device memory, in one
// launch a rank, and through the cells of the node segment for small host memory; and the way back to
// messages where a rank's memory cannot be had.
#include "direct_exchanges.hpp"

namespace gantry::coll {
namespace {

using namespace direct_exchanges;

TEST(DirectExchange, StoresDeviceMemoryInOneLaunchARank) {
    for (const Operations operations : {&alltoalls, &allgathers})
        for (const int ranks : {2, 3, 4, 7})
            for (const Bytes bytes : {Bytes{1}, Bytes{8}, Bytes{1001}, 64 * kKiB})
                for (std::uint64_t seed = 1; seed <= 2; ++seed) {
                    const Trial test{.ranks = ranks, .bytes = bytes};
                    const NodeCosts costs = run(operations, test, seed);
                    EXPECT_EQ(costs.launches, static_cast<std::uint64_t>(ranks * test.rounds))
                        << ranks << " ranks, " << bytes << " bytes";
                    EXPECT_EQ(costs.staged, 0u) << ranks << " ranks, " << bytes << " bytes";
                    EXPECT_EQ(costs.messages, 0u) << ranks << " ranks, " << bytes << " bytes";
                }
}

TEST(DirectExchange, CopiesBlocksOutOfTheWayInPlace) {
    for (const int ranks : {2, 3, 7})
        for (const int gpus : {1, 8})
            for (const Bytes bytes : {Bytes{1}, Bytes{1001}, 64 * kKiB})
                for (std::uint64_t seed = 1; seed <= 2; ++seed) {
                    Trial test{.ranks = ranks, .gpus = gpus, .bytes = bytes, .in_place = true};
                    // Two ranks of device memory swap two messages.
                    const std::uint64_t messages = run(&alltoalls, test, seed).messages;
                    EXPECT_TRUE(messages == 0 || ranks == 2) << ranks;
                    test.places = [](int) { return std::pair(Place::host, Place::host); };
                    test.bytes = 100;
                    EXPECT_EQ(run(&alltoalls, test, seed).messages, 0u) << ranks;
                }
}

// By messages: where some memory cannot be mapped, or lies on the host.
TEST(DirectExchange, GoesByMessagesInPlaceToo) {
    for (const int ranks : {2, 3, 5})
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
            Trial test{.ranks = ranks, .bytes = 16 * kKiB, .in_place = true};
            test.prepare = [](Rank& rank) {
                rank.device.faults.refuse_ipc_open = rank.number == 1;
            };
            EXPECT_GT(run(&alltoalls, test, seed).messages, 0u);
            test.prepare = [](Rank&) {};
            test.places = [](int rank) {
                return std::pair(Place::device, rank == 0 ? Place::host : Place::device);
            };
            EXPECT_GT(run(&alltoalls, test, seed).messages, 0u);
        }
}

TEST(DirectExchange, OneRankStoresForAllThatShareAGpu) {
    for (const Operations operations : {&alltoalls, &allgathers})
        for (const int gpus : {1, 2}) {
            const Trial test{.ranks = 4, .gpus = gpus, .bytes = 4 * kKiB, .rounds = 8};
            const NodeCosts costs = run(operations, test);
            // Who else uses a GPU is known from the second round on.
            EXPECT_LE(costs.launches, static_cast<std::uint64_t>(4 + gpus * test.rounds)) << gpus;
            EXPECT_EQ(costs.staged, 0u) << gpus;
            EXPECT_EQ(costs.messages, 0u) << gpus;
        }
}

TEST(DirectExchange, TakesBlocksOfAnySize) {
    for (const int ranks : {2, 3, 5})
        for (const int gpus : {1, 2, 8}) {
            Trial test{.ranks = ranks, .gpus = gpus, .bytes = 333, .unequal = true};
            for (std::uint64_t seed = 1; seed <= 2; ++seed) {
                EXPECT_EQ(run(&alltoalls, test, seed).messages, 0u) << ranks;
                EXPECT_EQ(run(&allgathers, test, seed).messages, 0u) << ranks;
                EXPECT_EQ(run(&with_a_root, test, seed).messages, 0u) << ranks;
            }
            test.in_place = true;
            EXPECT_EQ(run(&allgathers, test).messages, 0u) << ranks;
            EXPECT_EQ(run(&with_a_root, test).messages, 0u) << ranks;
            test.unequal = false;
            EXPECT_EQ(run(&allgathers, test).messages, 0u) << ranks;
            test.bytes = 0;
            EXPECT_EQ(run(&alltoalls, test).messages, 0u) << ranks;
        }
}

TEST(DirectExchange, BroadcastsGoWhereThePlannerExpectsThemToBeFaster) {
    for (const Bytes bytes : {Bytes{8}, 16 * kKiB, kMiB}) {
        Trial test{.bytes = bytes, .fixed = plan::Algorithm::automatic};
        EXPECT_GT(run(&bcasts, test).messages, 0u) << bytes;
        test.fixed = plan::Algorithm::direct;
        EXPECT_EQ(run(&bcasts, test).messages, 0u) << bytes;
        test.fixed = plan::Algorithm::automatic;
        test.ranks = 4;
        const NodeCosts four = run(&bcasts, test);
        const auto rounds = static_cast<std::uint64_t>(test.rounds);
        EXPECT_EQ(four.messages, 0u) << bytes;
        EXPECT_EQ(four.launches, rounds) << bytes;
        test.fixed = plan::Algorithm::binomial;
        EXPECT_GT(run(&bcasts, test).messages, 0u) << bytes;
    }
}

// One launch for each piece, on every rank; nothing goes through the host.
TEST(DirectExchange, LongBroadcastsAreStoredInSharesAndPassedOn) {
    for (const int ranks : {3, 4, 7, 8})
        for (const Bytes bytes : {64 * kKiB, 256 * kKiB + 1, 300 * kKiB + 77}) {
            Trial test{.ranks = ranks,
                       .bytes = bytes,
                       .fixed = plan::Algorithm::direct_shares,
                       .segment = 64 * kKiB};
            const Bytes pieces = (bytes + test.segment - 1) / test.segment;
            const NodeCosts costs = run(&bcasts, test, static_cast<std::uint64_t>(ranks));
            EXPECT_EQ(costs.messages, 0u) << ranks << " ranks, " << bytes << " bytes";
            EXPECT_EQ(costs.staged, 0u) << ranks << " ranks, " << bytes << " bytes";
            const auto all = static_cast<std::uint64_t>(test.rounds) * pieces *
                             static_cast<std::uint64_t>(ranks);
            // Of a last piece of a few bytes one rank gets everything, and alone passes it on.
            EXPECT_LE(costs.launches, all) << ranks << " ranks, " << bytes << " bytes";
            EXPECT_GE(costs.launches, all - static_cast<std::uint64_t>(test.rounds * (ranks - 2)))
                << ranks << " ranks, " << bytes << " bytes";
        }
}

TEST(DirectExchange, ABroadcastInSharesGoesByMessagesWhereARankCannotMapTheOthers) {
    for (const int refused : {0, 1, 3}) {
        Trial test{.ranks = 4,
                   .bytes = 300 * kKiB,
                   .fixed = plan::Algorithm::direct_shares,
                   .segment = 64 * kKiB};
        test.prepare = [refused](Rank& rank) {
            rank.device.faults.refuse_ipc_open = rank.number == refused;
        };
        EXPECT_GT(run(&bcasts, test).messages, 0u) << refused;
    }
}

TEST(DirectExchange, TheRootOfABroadcastBySeveralKindsOfMemoryDoesNotDivideTheRanks) {
    for (const Place from : {Place::host, Place::device, Place::pinned})
        for (const Place into : {Place::host, Place::device})
            for (const int ranks : {2, 5})
                for (std::uint64_t seed = 1; seed <= 2; ++seed) {
                    Trial test{.ranks = ranks,
                               .bytes = 300,
                               .rounds = 6,
                               .fixed = plan::Algorithm::automatic};
                    test.places = [=](int rank) {
                        return std::pair(from, rank % 2 == 0 ? into : Place::device);
                    };
                    run(&bcasts, test, seed);
                    test.bytes = 100 * kKiB;
                    run(&bcasts, test, seed);
                }
}

// What rank 0 has switched off, nobody does: the setting of the job counts, not a rank's own.
Task<Status> without_node_segment(Rank& rank, const Trial& test) {
    Everybody everybody(rank);
    everybody.common().job.tuning.node_segment = false;
    Bytebuffer buffer(rank, Place::host, test.bytes, rank.number);
    if (rank.number == 0) buffer.fill(1);
    Status told = co_await bcast(rank.executor, everybody.team(), buffer.whole(), 0);
    GANTRY_CO_TRY(told);
    WORLD_CHECK(buffer.holds(1, test.bytes));
    co_return success();
}

TEST(DirectExchange, TheJobsSettingOfTheNodeSegmentCounts) {
    EXPECT_GT(run(&without_node_segment, {.ranks = 3, .bytes = 8}).messages, 0u);
}

TEST(DirectExchange, PutsSmallHostMemoryIntoCells) {
    const auto host = [](int) { return std::pair(Place::host, Place::host); };
    for (const int ranks : {2, 3, 8})
        for (const bool unequal : {false, true}) {
            const Trial test{
                .ranks = ranks, .bytes = 100, .unequal = unequal, .rounds = 40, .places = host};
            EXPECT_EQ(run(&alltoalls, test).launches, 0u);
            EXPECT_EQ(run(&allgathers, test).launches, 0u);
            EXPECT_EQ(run(&with_a_root, test).launches, 0u);
        }
}

// A copy out of the GPU and one into it, whatever the number of ranks.
TEST(DirectExchange, PutsSmallDeviceMemoryIntoCells) {
    for (const int ranks : {3, 4, 8})
        for (const bool in_place : {false, true})
            for (std::uint64_t seed = 1; seed <= 2; ++seed)
                for (const Operations operations : {&alltoalls, &allgathers}) {
                    if (in_place && operations == &alltoalls) continue;
                    const Trial test{.ranks = ranks,
                                     .bytes = 100,
                                     .in_place = in_place,
                                     .fixed = plan::Algorithm::cells};
                    const NodeCosts costs = run(operations, test, seed);
                    const auto each = static_cast<std::uint64_t>(ranks * test.rounds);
                    EXPECT_EQ(costs.staged, each) << ranks;
                    // In place, blocks lie on both sides of this rank's own.
                    EXPECT_GE(costs.unstaged, each) << ranks;
                    EXPECT_LE(costs.unstaged, in_place ? 2 * each : each) << ranks;
                    EXPECT_EQ(costs.launches + costs.messages, 0u) << ranks;
                }
}

// From the second time on: then all know that it is of several kinds.
TEST(DirectExchange, SmallMemoryOfSeveralKindsMeetsInCells) {
    const auto mixed = [](int rank) {
        return std::pair(rank % 2 == 0 ? Place::host : Place::device,
                         rank % 3 == 1 ? Place::pinned : Place::device);
    };
    for (const int ranks : {3, 4, 7})
        for (const device::IpcKind ipc : {device::IpcKind::legacy, device::IpcKind::none})
            for (const plan::Algorithm fixed :
                 {plan::Algorithm::automatic, plan::Algorithm::direct})
                for (const Operations operations : {&alltoalls, &allgathers, &with_a_root}) {
                    Trial test{.ranks = ranks,
                               .bytes = 60,
                               .rounds = 2,
                               .fixed = fixed,
                               .places = mixed,
                               .ipc = ipc};
                    const NodeCosts costs = run(operations, test);
                    if (fixed != plan::Algorithm::automatic || operations == &with_a_root) continue;
                    test.rounds = 6;
                    EXPECT_EQ(run(operations, test).messages, costs.messages) << ranks;
                }
}

TEST(DirectExchange, GoesByMessagesWhereMemoryIsOfSeveralKinds) {
    const auto mixed = [](int rank) {
        return std::pair(rank == 0 ? Place::host : Place::device,
                         rank == 1 ? Place::pinned : Place::device);
    };
    for (const int ranks : {2, 3, 4})
        for (const Bytes bytes : {Bytes{8}, 16 * kKiB})
            for (std::uint64_t seed = 1; seed <= 2; ++seed)
                for (const Operations operations : {&alltoalls, &allgathers, &with_a_root})
                    EXPECT_GT(
                        run(operations, {.ranks = ranks, .bytes = bytes, .places = mixed}, seed)
                            .messages,
                        0u);
}

TEST(DirectExchange, GoesByMessagesWhereMemoryCannotBeMapped) {
    for (const int ranks : {2, 3, 4}) {
        const auto refuse = [](Rank& rank) {
            rank.device.faults.refuse_ipc_open = rank.number == 1;
        };
        for (const Operations operations : {&alltoalls, &allgathers}) {
            EXPECT_GT(
                run(operations, {.ranks = ranks, .bytes = 4 * kKiB, .prepare = refuse}).messages,
                0u);
        }
    }
}

TEST(DirectExchange, StoresIntoScratchMemoryWhereMemoryOfPoolsIsReceived) {
    for (const int ranks : {2, 3, 4})
        for (const Operations operations : {&alltoalls, &allgathers, &with_a_root}) {
            const Trial test{.ranks = ranks, .bytes = 4 * kKiB, .ipc = device::IpcKind::none};
            const NodeCosts costs = run(operations, test);
            EXPECT_EQ(costs.messages, 0u) << ranks;
            EXPECT_EQ(costs.staged, 0u) << ranks;
        }
}

// One rank sends more than the others have room for.
Task<Status> too_much(Rank& rank, Place place) {
    Everybody everybody(rank);
    const auto ranks = static_cast<Bytes>(everybody.size());
    const Bytes mine = rank.number == 0 ? 200 : 100;
    Bytebuffer outgoing(rank, place, mine * ranks, rank.number),
        incoming(rank, place, 100 * ranks, rank.number);
    Blocks out, in;
    out.address = outgoing.address();
    in.address = incoming.address();
    out.layout = in.layout = outgoing.whole().layout;
    out.count = mine;
    in.count = 100;
    Status done = co_await alltoall(rank.executor, everybody.team(), out, in);
    WORLD_CHECK(done.error_class() == MPI_ERR_TRUNCATE);
    co_return success();
}

TEST(DirectExchange, RefusesABlockThatIsTooLong) {
    for (const Place place : {Place::device, Place::host}) {
        World world({.machine = "h200", .ranks = 3, .ranks_per_node = 3, .seed = 1});
        const Ending ending = world.run([place](Rank& rank) { return too_much(rank, place); });
        EXPECT_TRUE(ending.good()) << ending;
    }
}

// A rank dies after any number of its own steps; the others end, and nobody is stuck.
Task<Status> with_a_death(Rank& rank, const Trial& test, int& ended) {
    Status done = co_await alltoalls(rank, test);
    ++ended;
    WORLD_CHECK(done.ok() || done.error_class() == MPI_ERR_PROC_ABORTED);
    co_return success();
}

TEST(DirectExchange, EndsWhenARankDies) {
    for (const int gpus : {1, 8})
        for (Nanoseconds time = 0; time < 400 * kMicrosecond; time += 3 * kMicrosecond) {
            Trial test{.ranks = 3, .gpus = gpus, .bytes = 4 * kKiB, .rounds = 1000};
            int ended = 0;
            World world({.machine = "h200", .ranks = 3, .ranks_per_node = 3, .seed = 1});
            world.kill_at(time, 1);
            const Ending ending =
                world.run([&](Rank& rank) { return with_a_death(rank, test, ended); });
            ASSERT_TRUE(ending.good()) << "death at " << time << " ns: " << ending;
            ASSERT_EQ(ended, 2) << "death at " << time << " ns";
        }
}

// Operations of one communicator in flight at once, ended in any order.
Task<Status> in_flight_together(Rank& rank) {
    Everybody everybody(rank);
    const auto ranks = static_cast<Bytes>(everybody.size());
    constexpr int kOperations = 20;
    constexpr Bytes kBlock = 500;
    std::vector<std::unique_ptr<Bytebuffer>> outgoing, incoming;
    Scope scope(rank.executor);
    for (int each = 0; each < kOperations; ++each) {
        outgoing.push_back(
            std::make_unique<Bytebuffer>(rank, Place::device, kBlock * ranks, rank.number));
        incoming.push_back(
            std::make_unique<Bytebuffer>(rank, Place::device, kBlock * ranks, rank.number));
        outgoing.back()->fill(key_of(each, rank.number, 0));
        Blocks out, in;
        out.layout = in.layout = outgoing.back()->whole().layout;
        out.count = in.count = kBlock;
        out.address = outgoing.back()->address();
        in.address = incoming.back()->address();
        scope.spawn(alltoall(rank.executor, everybody.team(), out, in));
    }
    Status all = co_await scope.join(rank.executor);
    GANTRY_CO_TRY(all);
    co_return success();
}

TEST(DirectExchange, KeepsOperationsInFlightApart) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        World world({.machine = "h200",
                     .ranks = 4,
                     .ranks_per_node = 4,
                     .seed = seed,
                     .jitter = 20 * kMicrosecond});
        const Ending ending = world.run(in_flight_together);
        EXPECT_TRUE(ending.good()) << ending;
        EXPECT_EQ(world.shared_memory().messages(), 0u);
    }
}

}  // namespace
}  // namespace gantry::coll

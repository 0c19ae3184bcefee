// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges between ranks of one node without messages: by stores into mapped device memory, in one
// launch a rank, and through the cells of the board for small host memory; and the way back to
// messages where a rank's memory cannot be had.
#include "coll/bcast.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/gather.hpp"
#include "collective_world.hpp"

namespace gantry::coll {
namespace {

using model::Operation;
using world::Bytebuffer;
using world::Ending;
using world::World;

struct Trial {
    int ranks = 2;
    int gpus = 8;
    Bytes bytes = 0;  // of a block
    bool unequal = false;
    bool in_place = false;  // not of unequal blocks of an all-to-all
    int rounds = 3;
    // The planner would send some by messages, and short ones through cells.
    plan::Algorithm fixed = plan::Algorithm::direct;
    // Of each rank: what it sends from, what it receives into.
    std::function<std::pair<Place, Place>(int rank)> places = [](int) {
        return std::pair(Place::device, Place::device);
    };
    std::function<void(Rank&)> prepare = [](Rank&) {};
    device::IpcKind ipc = device::IpcKind::legacy;
};

Bytes block_bytes(const Trial& test, int from, int to) {
    return test.unequal ? test.bytes * static_cast<Bytes>((from + 2 * to) % 3) : test.bytes;
}

std::uint64_t key_of(int round, int from, int to) {
    return static_cast<std::uint64_t>((round * 64 + from) * 64 + to);
}

// A part of a buffer, behind the device's back.
void fill_part(Rank& rank, Bytebuffer& buffer, std::uint64_t key, Bytes offset, Bytes bytes) {
    if (bytes > 0)
        world::fill_pattern(rank.device.behind(buffer.address() + offset, bytes), key, bytes);
}

bool holds_part(Rank& rank, Bytebuffer& buffer, std::uint64_t key, Bytes offset, Bytes bytes) {
    return bytes == 0 ||
           world::holds_pattern(rank.device.behind(buffer.address() + offset, bytes), key, bytes);
}

// Blocks of bytes in one buffer, with a gap behind each where they are unequal.
struct Parts {
    std::vector<std::int64_t> counts, displacements;
    Bytes all = 0;

    Blocks in(Bytebuffer& buffer, bool unequal) const {
        Blocks blocks;
        blocks.address = buffer.address();
        blocks.layout = buffer.whole().layout;
        if (unequal) {
            blocks.counts = counts;
            blocks.displacements = displacements;
        } else {
            blocks.count = counts.empty() ? 0 : static_cast<std::uint64_t>(counts[0]);
        }
        return blocks;
    }
};

template <class Size>
Parts parts(int ranks, bool unequal, Size size) {
    Parts parts;
    for (int rank = 0; rank < ranks; ++rank) {
        parts.counts.push_back(static_cast<std::int64_t>(size(rank)));
        parts.displacements.push_back(static_cast<std::int64_t>(parts.all));
        parts.all += size(rank) + (unequal ? 3 : 0);
    }
    return parts;
}

Task<Status> alltoalls(Rank& rank, const Trial& test) {
    test.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(test.fixed);
    const int me = rank.number, ranks = everybody.size();
    const auto [from, into] = test.places(me);
    const Parts out = parts(ranks, test.unequal, [&](int to) { return block_bytes(test, me, to); });
    const Parts in =
        parts(ranks, test.unequal, [&](int sender) { return block_bytes(test, sender, me); });
    Bytebuffer outgoing(rank, from, out.all, me % test.gpus, test.ipc),
        incoming(rank, into, in.all, me % test.gpus, test.ipc);
    for (int round = 0; round < test.rounds; ++round) {
        incoming.clear();
        for (int to = 0; to < ranks; ++to)
            fill_part(rank, test.in_place ? incoming : outgoing, key_of(round, me, to),
                      static_cast<Bytes>(out.displacements[static_cast<std::size_t>(to)]),
                      block_bytes(test, me, to));
        Status done;
        if (test.in_place)
            done = co_await alltoall_in_place(rank.executor, everybody.team(),
                                              in.in(incoming, test.unequal));
        else
            done = co_await alltoall(rank.executor, everybody.team(),
                                     out.in(outgoing, test.unequal), in.in(incoming, test.unequal));
        GANTRY_CO_TRY(done);
        for (int sender = 0; sender < ranks; ++sender)
            WORLD_CHECK(
                holds_part(rank, incoming, key_of(round, sender, me),
                           static_cast<Bytes>(in.displacements[static_cast<std::size_t>(sender)]),
                           block_bytes(test, sender, me)));
    }
    co_return success();
}

Task<Status> allgathers(Rank& rank, const Trial& test) {
    test.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(test.fixed);
    const int me = rank.number, ranks = everybody.size();
    const auto [from, into] = test.places(me);
    const auto size = [&](int sender) { return block_bytes(test, sender, 0); };
    const Parts in = parts(ranks, test.unequal, size);
    const auto own = static_cast<Bytes>(in.displacements[static_cast<std::size_t>(me)]);
    Bytebuffer outgoing(rank, from, size(me), me % test.gpus, test.ipc),
        incoming(rank, into, in.all, me % test.gpus, test.ipc);
    for (int round = 0; round < test.rounds; ++round) {
        incoming.clear();
        fill_part(rank, outgoing, key_of(round, me, 0), 0, size(me));
        if (test.in_place) fill_part(rank, incoming, key_of(round, me, 0), own, size(me));
        Status done = co_await allgather(rank.executor, everybody.team(), outgoing.whole(),
                                         in.in(incoming, test.unequal), test.in_place);
        GANTRY_CO_TRY(done);
        for (int sender = 0; sender < ranks; ++sender)
            WORLD_CHECK(
                holds_part(rank, incoming, key_of(round, sender, 0),
                           static_cast<Bytes>(in.displacements[static_cast<std::size_t>(sender)]),
                           size(sender)));
    }
    co_return success();
}

// Every rank in turn is the root of a broadcast, a gather and a scatter.
Task<Status> with_a_root(Rank& rank, const Trial& test) {
    test.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(test.fixed);
    const int me = rank.number, ranks = everybody.size(), gpu = me % test.gpus;
    const auto [from, into] = test.places(me);
    const Parts each = parts(ranks, test.unequal, [&](int of) { return block_bytes(test, of, 0); });
    const Bytes mine = block_bytes(test, me, 0);
    const auto at = [&](int of) {
        return static_cast<Bytes>(each.displacements[static_cast<std::size_t>(of)]);
    };
    for (int root = 0; root < ranks; ++root) {
        Bytebuffer one(rank, me == root ? from : into, test.bytes, gpu, test.ipc);
        if (me == root) fill_part(rank, one, key_of(root, 0, 0), 0, test.bytes);
        Status told = co_await bcast(rank.executor, everybody.team(), one.whole(), root);
        GANTRY_CO_TRY(told);
        WORLD_CHECK(holds_part(rank, one, key_of(root, 0, 0), 0, test.bytes));
        Bytebuffer block(rank, from, mine, gpu, test.ipc), all(rank, into, each.all, gpu, test.ipc);
        fill_part(rank, block, key_of(root, me, 1), 0, mine);
        if (test.in_place && me == root) fill_part(rank, all, key_of(root, me, 1), at(me), mine);
        Status gathered =
            co_await gather(rank.executor, everybody.team(), block.whole(),
                            each.in(all, test.unequal), root, test.in_place && me == root);
        GANTRY_CO_TRY(gathered);
        for (int of = 0; me == root && of < ranks; ++of)
            WORLD_CHECK(
                holds_part(rank, all, key_of(root, of, 1), at(of), block_bytes(test, of, 0)));
        block.clear();
        for (int of = 0; of < ranks; ++of)
            fill_part(rank, all, key_of(root, of, 2), at(of), block_bytes(test, of, 0));
        Status scattered =
            co_await scatter(rank.executor, everybody.team(), each.in(all, test.unequal),
                             block.whole(), root, test.in_place && me == root);
        GANTRY_CO_TRY(scattered);
        const Bytes got = test.in_place && me == root ? 0 : mine;
        WORLD_CHECK(holds_part(rank, block, key_of(root, me, 2), 0, got));
    }
    co_return success();
}

using Operations = Task<Status> (*)(Rank&, const Trial&);

struct Costs {
    std::uint64_t launches = 0, most_of_a_rank = 0, staged = 0, unstaged = 0, messages = 0;
};

Costs run(Operations operations, const Trial& test, std::uint64_t seed = 1) {
    Costs costs;
    World world({.machine = "h200",
                 .ranks = test.ranks,
                 .ranks_per_node = test.ranks,
                 .seed = seed,
                 .jitter = seed > 1 ? 20 * kMicrosecond : 0});
    const Ending ending = world.run([&](Rank& rank) { return operations(rank, test); });
    EXPECT_TRUE(ending.good()) << test.ranks << " ranks, " << test.bytes << " bytes: " << ending;
    EXPECT_TRUE(world.settle()) << test.ranks << " ranks, " << test.bytes << " bytes, seed "
                                << seed;
    for (int rank = 0; rank < test.ranks; ++rank) {
        const device::fake::Counts& counts = world.rank(rank).device.counts();
        costs.launches += counts.launches;
        costs.most_of_a_rank = std::max(costs.most_of_a_rank, counts.launches);
        costs.staged += counts.copies[static_cast<int>(Operation::d2h)] +
                        counts.copies[static_cast<int>(Operation::pageable_d2h)];
        costs.unstaged += counts.copies[static_cast<int>(Operation::h2d)] +
                          counts.copies[static_cast<int>(Operation::pageable_h2d)];
    }
    costs.messages = messages_of(world);
    return costs;
}

TEST(DirectExchange, StoresDeviceMemoryInOneLaunchARank) {
    for (const Operations operations : {&alltoalls, &allgathers})
        for (const int ranks : {2, 3, 4, 7})
            for (const Bytes bytes : {Bytes{1}, Bytes{8}, Bytes{1001}, 64 * kKiB})
                for (std::uint64_t seed = 1; seed <= 2; ++seed) {
                    const Trial test{.ranks = ranks, .bytes = bytes};
                    const Costs costs = run(operations, test, seed);
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
            const Costs costs = run(operations, test);
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

Task<Status> bcasts(Rank& rank, const Trial& test) {
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(test.fixed);
    const auto [from, into] = test.places(rank.number);
    for (int round = 0; round < test.rounds; ++round) {
        const int root = round % everybody.size();
        Bytebuffer buffer(rank, rank.number == root ? from : into, test.bytes, rank.number);
        if (rank.number == root) buffer.fill(key_of(round, root, 0));
        Status told = co_await bcast(rank.executor, everybody.team(), buffer.whole(), root);
        GANTRY_CO_TRY(told);
        WORLD_CHECK(buffer.holds(key_of(round, root, 0), test.bytes));
    }
    co_return success();
}

TEST(DirectExchange, BroadcastsGoWhereThePlannerExpectsThemToBeFaster) {
    for (const Bytes bytes : {Bytes{8}, 16 * kKiB, kMiB}) {
        Trial test{.bytes = bytes, .fixed = plan::Algorithm::automatic};
        EXPECT_GT(run(&bcasts, test).messages, 0u) << bytes;
        test.fixed = plan::Algorithm::direct;
        EXPECT_EQ(run(&bcasts, test).messages, 0u) << bytes;
        test.fixed = plan::Algorithm::automatic;
        test.ranks = 4;
        const Costs four = run(&bcasts, test);
        const auto rounds = static_cast<std::uint64_t>(test.rounds);
        EXPECT_EQ(four.messages, 0u) << bytes;
        EXPECT_EQ(four.launches, rounds) << bytes;
        test.fixed = plan::Algorithm::binomial;
        EXPECT_GT(run(&bcasts, test).messages, 0u) << bytes;
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
Task<Status> without_board(Rank& rank, const Trial& test) {
    Everybody everybody(rank);
    everybody.common().job.tuning.board = false;
    Bytebuffer buffer(rank, Place::host, test.bytes, rank.number);
    if (rank.number == 0) buffer.fill(1);
    Status told = co_await bcast(rank.executor, everybody.team(), buffer.whole(), 0);
    GANTRY_CO_TRY(told);
    WORLD_CHECK(buffer.holds(1, test.bytes));
    co_return success();
}

TEST(DirectExchange, TheJobsSettingOfTheBoardCounts) {
    EXPECT_GT(run(&without_board, {.ranks = 3, .bytes = 8}).messages, 0u);
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
                    const Costs costs = run(operations, test, seed);
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
                    const Costs costs = run(operations, test);
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
            const Costs costs = run(operations, test);
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

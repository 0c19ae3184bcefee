// SPDX-License-Identifier: BSD-3-Clause
//
// Which messages are like the one before, so that they are selection hits, and which are not: of fresh
// memory that could be mapped, of another size, behind one of another kind, to host memory. Told by
// flags or by chunks, each has its own bytes (slot_flag_test.cpp has what goes wrong).
#include "sanitized.hpp"
#include "world/harness/openings.hpp"
#include "world/harness/programs.hpp"

#include "p2p/wire.hpp"

#include <map>
#include <memory>
#include <random>

namespace gantry::world {
namespace {

namespace wire = p2p::wire;

constexpr Bytes kOnePiece = 64 * kKiB;

void staged(config::Config& config) {
    config.ipc = false;
}

Options one_node(std::uint64_t seed, std::function<void(config::Config&)> change = {}) {
    return {.machine = "h200",
            .ranks_per_node = 2,
            .seed = seed,
            .jitter = kMicrosecond,
            .mechanisms = "all,-anchors",
            .change_machine = &dear_openings,
            .change_config = std::move(change)};
}

std::uint64_t count(World& world, wire::Kind kind) {
    return world.shared_memory().count(kind).messages;
}

// Memory that could be mapped: each message from another allocation into another one is staged like
// the last; the same two again and again are one day worth a mapping.
Task<Status> from_fresh_memory(Rank& rank, int allocations, int messages, device::IpcKind sink) {
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    for (int i = 0; i < allocations; ++i)
        buffers.push_back(std::make_unique<Bytebuffer>(
            rank, Place::device, kOnePiece, 0, rank.number == 0 ? device::IpcKind::legacy : sink));
    for (int i = 0; i < messages; ++i) {
        Bytebuffer& buffer = *buffers[static_cast<std::size_t>(i % allocations)];
        Status passed = co_await pass_on(rank, buffer, static_cast<std::uint64_t>(i));
        GANTRY_CO_TRY(passed);
    }
    co_return success();
}

TEST(FreshMemory, IsStagedLikeTheLastUntilAMappingPays) {
    constexpr int kMessages = 1000;
    for (const int allocations : {kMessages, 2, 1}) {
        for (const device::IpcKind sink : {device::IpcKind::legacy, device::IpcKind::none}) {
            SCOPED_TRACE(testing::Message() << allocations << " allocations, sinks of kind "
                                            << static_cast<int>(sink));
            World world(one_node(1));
            const Ending ending = world.run(
                [&](Rank& rank) { return from_fresh_memory(rank, allocations, kMessages, sink); });
            ASSERT_TRUE(ending.good()) << ending;
            ASSERT_TRUE(world.settle());
            const std::uint64_t opens =
                world.rank(0).device.counts().opens + world.rank(1).device.counts().opens;
            const std::uint64_t asked = count(world, wire::kCts);
            if (allocations == kMessages) {
                EXPECT_EQ(opens, 0u);
                EXPECT_LE(asked, 2u);
            } else {
                // Those that nobody was asked about count as well.
                EXPECT_EQ(opens, static_cast<std::uint64_t>(allocations));
                EXPECT_LE(asked, 42u);
            }
        }
    }
}

// Requests in any form that cannot leave: the next message names the right allocation all the same,
// and has a slot. From each allocation twice, then from the next: too few for a mapping.
constexpr std::size_t kSome = 40;
Task<Status> refused_now_and_then(Rank& rank, bool& refuse) {
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    for (std::size_t i = 0; i < kSome; ++i)
        buffers.push_back(std::make_unique<Bytebuffer>(rank, Place::device, kOnePiece, 0));
    for (std::uint64_t i = 0; i < 200; ++i) {
        Bytebuffer& buffer = *buffers[i / 2 % kSome];
        Status passed;
        if (i % 3 == 0)
            passed = co_await pass_on_at_second_try(rank, buffer, i, refuse);
        else
            passed = co_await pass_on(rank, buffer, i);
        GANTRY_CO_TRY(passed);
    }
    co_return success();
}

TEST(FreshMemory, ARequestThatCannotLeaveIsNotTakenForSaid) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        bool refuse = false;
        std::map<transport::MessageKind, int> refused;
        Options with = one_node(seed);
        with.change_machine = [](model::Machine& machine) {
            dear_openings(machine);
            machine.gpu.calls.ipc_open = kMillisecond;
        };
        with.on_send_in_node = [&](int, transport::MessageKind kind) {
            if (!refuse || !is_request(kind)) return success();
            ++refused[kind];
            return failure(MPI_ERR_NO_MEM, "no room for it");
        };
        World world(std::move(with));
        const Ending ending =
            world.run([&refuse](Rank& rank) { return refused_now_and_then(rank, refuse); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(world.rank(0).device.counts().opens + world.rank(1).device.counts().opens, 0u);
        EXPECT_GT(refused[wire::kRtsFromTemplate], 10);
        EXPECT_GT(refused[wire::kRtsOtherBuffer], 10);
        EXPECT_LE(count(world, wire::kRts), 4u);
        EXPECT_EQ(count(world, wire::kChunk), 0u) << "slots were lost";
    }
}

// The receive comes when the request lies there, and none, some, or all of the pieces do.
Task<Status> late_receives(Rank& rank, Bytes bytes, Nanoseconds latest) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (int i = 0; i < 30; ++i) {
        const auto key = static_cast<std::uint64_t>(i);
        if (rank.number == 0) {
            buffer.fill(key);
            Result<p2p::Request*> sending =
                rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard);
            Status there = co_await send(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(there);
            Received sent = co_await finish(rank.executor, rank, std::move(sending));
            GANTRY_CO_TRY(sent.status);
            Received token = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(token.status);
        } else {
            buffer.clear();
            Received there = co_await receive(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(there.status);
            Status slept = co_await rank.sleep(rank.executor, i * latest / 30);
            GANTRY_CO_TRY(slept);
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(key, bytes));
            Status told = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(told);
        }
    }
    co_return success();
}

TEST(LateReceives, OfAMessageLikeTheLastNobodyIsAsked) {
    for (const Bytes bytes : {kOnePiece, 2 * kMiB, 4 * kMiB}) {
        for (const Nanoseconds idle_timeout : {Nanoseconds{0}, 50 * kMicrosecond}) {
            SCOPED_TRACE(testing::Message() << bytes << " bytes, kernels stay " << idle_timeout);
            const auto run = [&](Nanoseconds latest) {
                World world(one_node(1, [idle_timeout](config::Config& config) {
                    staged(config);
                    config.idle_timeout = idle_timeout;
                }));
                const Ending ending =
                    world.run([&](Rank& rank) { return late_receives(rank, bytes, latest); });
                EXPECT_TRUE(ending.good()) << ending;
                EXPECT_TRUE(world.settle());
                return count(world, wire::kCts);
            };
            EXPECT_EQ(run(kMicrosecond), 0u);
            EXPECT_GE(run(400 * kMicrosecond), 2u);
        }
    }
}

constexpr Bytes kLarge = 2 * kMiB;

// Of four at once two find slots for all of them. By turns with chunks both would be slower.
Task<Status> in_windows(Rank& rank, int windows, int at_once) {
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    for (int i = 0; i < at_once; ++i)
        buffers.push_back(std::make_unique<Bytebuffer>(rank, Place::device, kLarge, rank.number));
    for (int window = 0; window < windows; ++window) {
        std::vector<Result<p2p::Request*>> all;
        for (int i = 0; i < at_once; ++i) {
            if (rank.number == 0) {
                buffers[i]->fill(static_cast<std::uint64_t>(window + i));
                all.push_back(rank.messenger.isend(rank.all, buffers[i]->whole(), 1, i,
                                                   p2p::SendMode::standard));
            } else {
                all.push_back(rank.messenger.ireceive(rank.all, buffers[i]->whole(), 0, i));
            }
        }
        for (Result<p2p::Request*>& each : all) {
            Received ended = co_await finish(rank.executor, rank, std::move(each));
            GANTRY_CO_TRY(ended.status);
        }
        for (int i = 0; rank.number == 1 && i < at_once; ++i)
            WORLD_CHECK(buffers[i]->holds(static_cast<std::uint64_t>(window + i), kLarge));
        Status token;
        if (rank.number == 1)
            token = co_await send(rank, kNothing, 0, 9);
        else
            token = (co_await receive(rank, kNothing, 1, 9)).status;
        GANTRY_CO_TRY(token);
    }
    co_return success();
}

// One at a time has all the slots, and flags again when enough have gone by chunks.
Task<Status> busy_then_quiet(Rank& rank) {
    Status busy = co_await in_windows(rank, 12, 4);
    GANTRY_CO_TRY(busy);
    Status quiet = co_await in_windows(rank, 60, 1);
    co_return quiet;
}

TEST(LargeMessages, GoByChunksWhereSlotsAreNotBack) {
    World world(one_node(1, [](config::Config& config) {
        staged(config);
        config.chunk = kLarge / 8;
        config.depth = 8;
    }));
    const Ending ending = world.run(&busy_then_quiet);
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
    EXPECT_GE(count(world, wire::kChunk), 40u * 8);
    EXPECT_LT(count(world, wire::kChunk), (48u + 33) * 8);
}

// Of one buffer: like the last, longer than flags tell of, and behind such a one.
Task<Status> other_sizes(Rank& rank) {
    constexpr Bytes kSizesInTurn[] = {4096, 4096, kMiB, kMiB, 8 * kMiB, kMiB, kOnePiece, kMiB};
    Bytebuffer buffer(rank, Place::device, 8 * kMiB, rank.number);
    std::uint64_t key = 0;
    for (int round = 0; round < 3; ++round) {
        for (const Bytes bytes : kSizesInTurn) {
            ++key;
            if (rank.number == 0) {
                buffer.fill(key);
                Status sent = co_await send(rank, buffer.part(0, bytes), 1, 0);
                GANTRY_CO_TRY(sent);
                Received token = co_await receive(rank, kNothing, 1, 1);
                GANTRY_CO_TRY(token.status);
            } else {
                buffer.clear();
                Received received = co_await receive(rank, buffer.part(0, bytes), 0, 0);
                GANTRY_CO_TRY(received.status);
                WORLD_CHECK(buffer.holds(key, bytes));
                Status told = co_await send(rank, kNothing, 0, 1);
                GANTRY_CO_TRY(told);
            }
        }
    }
    co_return success();
}

TEST(MixedSlots, OneOfAnotherSizeGoesTheWholeWay) {
    World world(one_node(1, &staged));
    const Ending ending = world.run(&other_sizes);
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
}

// Of memory that can be mapped, and is after a while, and of memory that cannot, in turn.
Task<Status> from_two_kinds(Rank& rank) {
    Bytebuffer pool(rank, Place::device, kOnePiece, 0, device::IpcKind::none);
    Bytebuffer legacy(rank, Place::device, kOnePiece, 0);
    for (std::uint64_t i = 0; i < 300; ++i) {
        Bytebuffer& buffer = i % 4 < 2 ? pool : legacy;
        Status passed = co_await pass_on(rank, buffer, i);
        GANTRY_CO_TRY(passed);
    }
    co_return success();
}

TEST(MixedSlots, OneBehindAMessageOfAnotherKindIsNotTakenForIt) {
    World world(one_node(1));
    const Ending ending = world.run(&from_two_kinds);
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
    EXPECT_GT(world.rank(0).device.counts().opens + world.rank(1).device.counts().opens, 0u);
}

// What goes to host memory is better in cells: the receiver's answer says so.
Task<Status> to_a_host(Rank& rank) {
    Bytebuffer buffer(rank, rank.number == 0 ? Place::device : Place::host, kMiB, 0);
    for (std::uint64_t i = 0; i < 6; ++i) {
        Status passed = co_await pass_on(rank, buffer, i);
        GANTRY_CO_TRY(passed);
    }
    co_return success();
}

TEST(MixedSlots, AVerdictThatMakesAnotherOfferBetterIsHeard) {
    World world(one_node(1, &staged));
    const Ending ending = world.run(&to_a_host);
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
    const std::uint64_t verdicts = count(world, wire::kCts);
    EXPECT_EQ(verdicts, 6u) << "each is asked about";
    EXPECT_GE(count(world, wire::kRts), 2u) << "the offer stayed the same";
}

// Messages of all kinds in turn, several under way, receives posted before and behind them, on
// devices and hosts: each has its own bytes, whichever way it went. All of a round come from one
// buffer, so that many are like the one before.
constexpr int at_once = 6, kRounds = 24;
constexpr Bytes kSizes[] = {8, 4096, kOnePiece, 300'001, kMiB, kMiB + 1};

struct Mixed {
    std::unique_ptr<Bytebuffer> buffer;
    Bytes bytes = 0;
    std::uint64_t key = 0;
};

Task<Status> mix(Rank& rank, std::uint64_t seed) {
    std::mt19937_64 both(seed), mine(seed * 2 + static_cast<std::uint64_t>(rank.number));
    std::vector<Mixed> buffers(at_once);
    for (Mixed& each : buffers) {
        const bool device = rank.number == 0 || mine() % 4 != 0;
        each.buffer = std::make_unique<Bytebuffer>(rank, device ? Place::device : Place::host,
                                                   kMiB + 1, rank.number);
    }
    for (int round = 0; round < kRounds; ++round) {
        const Bytes size = kSizes[both() % std::size(kSizes)];  // mostly like the one before
        const std::uint64_t round_key = both();
        if (rank.number == 0) buffers.front().buffer->fill(round_key);
        std::vector<Result<p2p::Request*>> requests;
        if (rank.number == 1 && mine() % 3 == 0) {
            Status late = co_await rank.sleep(rank.executor, 100 * kMicrosecond);
            GANTRY_CO_TRY(late);
        }
        for (int i = 0; i < at_once; ++i) {
            Mixed& each = buffers[static_cast<std::size_t>(i)];
            each.bytes = both() % 4 == 0 ? kSizes[both() % std::size(kSizes)] : size;
            each.key = round_key;
            const p2p::Buffer part =
                (rank.number == 0 ? buffers.front() : each).buffer->part(0, each.bytes);
            requests.push_back(rank.number == 0 ? rank.messenger.isend(rank.all, part, 1, i,
                                                                       p2p::SendMode::standard)
                                                : rank.messenger.ireceive(rank.all, part, 0, i));
        }
        for (int i = 0; i < at_once; ++i) {
            Received ended = co_await finish(rank.executor, rank,
                                             std::move(requests[static_cast<std::size_t>(i)]));
            GANTRY_CO_TRY(ended.status);
        }
        for (Mixed& each : buffers) {
            if (rank.number == 1) WORLD_CHECK(each.buffer->holds(each.key, each.bytes));
            each.buffer->clear();
        }
        Status met = co_await meet(rank, 99);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

TEST(MixedSlots, EachMessageHasItsOwnBytes) {
    for (std::uint64_t seed = 1; seed <= repetitions(8); ++seed) {
        World world(one_node(seed, [](config::Config& config) {
            staged(config);
            config.chunk = 256 * kKiB;
            config.device_pool = 8 * kMiB;  // too small for all at once
        }));
        const Ending ending = world.run([seed](Rank& rank) { return mix(rank, seed); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "seed " << seed;
        EXPECT_GT(count(world, wire::kChunk), 0u) << "seed " << seed;
    }
}

}  // namespace
}  // namespace gantry::world

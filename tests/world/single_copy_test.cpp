// SPDX-License-Identifier: BSD-3-Clause
//
// Large host messages inside a node that the receiver reads out of the sender's memory (docs/design/
// single-copy.md): offered where it is allowed and expected to win, and by slots whatever is refused, at
// the start or in the middle.
#include "world/harness/programs.hpp"

#include "p2p/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::world {
namespace {

constexpr double kSlow = 5e9, kFast = 40e9;

Options options_of(std::uint64_t seed = 1) {
    return {.machine = "c2050-qdr",
            .ranks = 2,
            .ranks_per_node = 2,
            .seed = seed,
            .jitter = static_cast<Nanoseconds>(seed % 3) * kMicrosecond,
            .mechanisms = "all",
            .change_machine =
                [](model::Machine& machine) {
                    machine.shared_memory.read_latency = 500;
                    machine.shared_memory.read_rate = model::Rate(kFast);
                },
            .change_config = [](config::Config& config) { config.device_pool = 4 * kMiB; }};
}

// As if ranks of the node had measured that.
void measured(World& world, double slots, double reads) {
    transport::HostRates& rates = world.shared_memory().host_rates();
    rates.slot_bytes_per_second = static_cast<std::uint64_t>(slots);
    rates.read_bytes_per_second = static_cast<std::uint64_t>(reads);
    rates.read_latency = 500;
}

struct Sent {
    Bytes bytes = kMiB;
    int messages = 3;
    Bytes room = 0;  // of the receive, where it is less
    p2p::SendMode mode = p2p::SendMode::standard;
    Place place = Place::host;
    int truncated = 0;
};

Task<Status> sends(Rank& rank, Sent& sent) {
    for (int i = 0; i < sent.messages; ++i) {
        const auto key = static_cast<std::uint64_t>(i) + sent.bytes;
        const bool late = i % 2 == 1;  // the message is there before its receive
        Bytebuffer buffer(rank, rank.number == 0 ? Place::host : sent.place, sent.bytes);
        if (late == (rank.number == 1)) {
            Status slept = co_await rank.sleep(rank.executor, 100 * kMicrosecond);
            GANTRY_CO_TRY(slept);
        }
        if (rank.number == 0) {
            buffer.fill(key);
            Status status = co_await send(rank, buffer.whole(), 1, 1, sent.mode);
            buffer.fill(~key);  // the program may overwrite it now
            GANTRY_CO_TRY(status);
            continue;
        }
        const Bytes room = sent.room > 0 ? sent.room : sent.bytes;
        Received received = co_await receive(rank, buffer.part(0, room), 0, 1);
        if (received.status.error_class() == MPI_ERR_TRUNCATE)
            ++sent.truncated;
        else
            GANTRY_CO_TRY(received.status);
        WORLD_CHECK(buffer.holds(key, room));
    }
    co_return success();
}

struct Counted {
    int reads = 0, chunks = 0;
};
Counted count(World& world) {
    Counted counted;
    for (const transport::fake::TraceRow& row : world.shared_memory().trace()) {
        counted.reads += row.kind == transport::fake::kRead ? 1 : 0;
        counted.chunks += row.kind == p2p::wire::kChunk ? 1 : 0;
    }
    return counted;
}

Counted run(World& world, Sent& sent) {
    const Ending ending = world.run([&sent](Rank& rank) { return sends(rank, sent); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something was left over, seed " << world.options().seed;
    return count(world);
}
Counted run(World& world) {
    Sent sent;
    return run(world, sent);
}

TEST(SingleCopy, IsReadInPiecesWhereThatWasMeasuredFaster) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        World world(options_of(seed));
        measured(world, kSlow, kFast);
        const Counted counted = run(world);
        EXPECT_EQ(counted.reads, 3 * 4) << "pieces of 256 KiB";
        EXPECT_EQ(counted.chunks, 0);
    }
}

TEST(SingleCopy, GoesThroughSlotsWhereTheseWereMeasuredFaster) {
    World world(options_of());
    measured(world, kFast, kSlow);
    const Counted counted = run(world);
    EXPECT_EQ(counted.reads, 0);
    EXPECT_EQ(counted.chunks, 3 * 16);
}

TEST(SingleCopy, IsMeasuredByTheFirstMessages) {
    World world(options_of());
    Sent sent{.bytes = 256 * kKiB, .messages = 6};
    const Counted counted = run(world, sent);
    const transport::HostRates& rates = world.shared_memory().host_rates();
    EXPECT_GT(rates.slot_bytes_per_second, 0u);
    EXPECT_NEAR(static_cast<double>(rates.read_latency), 500, 5);
    EXPECT_NEAR(static_cast<double>(rates.read_bytes_per_second), kFast, 0.05 * kFast);
    // Two messages of four pieces through slots; two whose calls are tried, read in pieces of 64 KiB. In
    // this world a copy out of a slot takes no time, so the others go through slots again.
    EXPECT_EQ(counted.reads, 2 * (4 + 4));
    EXPECT_EQ(counted.chunks, 4 * 4);
}

TEST(SingleCopy, IsNotOfferedWhereItIsNotAllowedOrSwitchedOff) {
    for (const bool allowed : {false, true}) {
        Options options = options_of();
        if (!allowed) options.reads = [](int) { return false; };
        if (allowed) options.mechanisms = "all,-cma";
        World world(options);
        measured(world, kSlow, kFast);
        const Counted counted = run(world);
        EXPECT_EQ(counted.reads, 0);
        EXPECT_EQ(counted.chunks, 3 * 16);
    }
}

// Only the sender could read: its offers are in vain, and it makes one.
TEST(SingleCopy, IsNotOfferedAgainToAPeerThatMayNotRead) {
    Options options = options_of();
    options.reads = [](int rank) { return rank == 0; };
    World world(options);
    measured(world, kSlow, kFast);
    const Counted counted = run(world);
    EXPECT_EQ(counted.reads, 0);
    EXPECT_EQ(counted.chunks, 3 * 16);
    EXPECT_TRUE(world.rank(0).transfer.endpoints.to(1).refuses_reads);
}

TEST(SingleCopy, ARefusalInTheMiddleFallsBackWithoutLoss) {
    for (int piece = 0; piece < 4; ++piece) {
        int asked = 0;
        Options options = options_of(static_cast<std::uint64_t>(piece) + 1);
        options.refuse_read = [&asked, piece](int) { return asked++ == piece; };
        World world(options);
        measured(world, kSlow, kFast);
        const Counted counted = run(world);
        EXPECT_EQ(counted.reads, piece + 1);
        EXPECT_EQ(counted.chunks, 3 * 16);
    }
}

TEST(SingleCopy, SynchronousAndTruncatedMessagesEndAsTheyShould) {
    World world(options_of());
    measured(world, kSlow, kFast);
    Sent sent{.room = 300 * kKiB, .mode = p2p::SendMode::synchronous};
    const Counted counted = run(world, sent);
    EXPECT_EQ(sent.truncated, 3);
    EXPECT_EQ(counted.reads, 3 * 2);
    EXPECT_EQ(counted.chunks, 0);
}

TEST(SingleCopy, ThresholdIsTakenAtItsWord) {
    Options options = options_of();
    options.change_config = [](config::Config& config) {
        config.cma_threshold = 128 * kKiB;
        config.device_pool = 4 * kMiB;
    };
    for (const Bytes bytes : {100 * kKiB, 128 * kKiB}) {
        World world(options);
        Sent sent{.bytes = bytes};
        const Counted counted = run(world, sent);
        EXPECT_EQ(counted.reads, bytes < 128 * kKiB ? 0 : 3);
    }
}

TEST(SingleCopy, WhatEndsOnADeviceGoesThroughSlots) {
    World world(options_of());
    measured(world, kSlow, kFast);
    Sent sent{.place = Place::device};
    const Counted counted = run(world, sent);
    EXPECT_EQ(counted.reads, 0);
    EXPECT_GT(counted.chunks, 0);
}

// --- a peer dies --------------------------------------------------------------------------------

struct Ended {
    Status of[2];
    bool right = false;
};

Task<Status> one(Rank& rank, Ended& ended) {
    Bytebuffer buffer(rank, Place::host, 4 * kMiB);
    if (rank.number == 0) {
        buffer.fill(7);
        ended.of[0] = co_await send(rank, buffer.whole(), 1, 1);
    } else {
        Received received = co_await receive(rank, buffer.whole(), 0, 1);
        ended.of[1] = received.status;
        ended.right = buffer.holds(7, 4 * kMiB);
    }
    co_return success();
}

TEST(SingleCopy, DeathOfEitherEndAtAnyMomentIsAnError) {
    for (const int victim : {0, 1}) {
        int failed = 0;
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            World world(options_of(seed));
            measured(world, kSlow, kFast);
            world.kill_at(static_cast<Nanoseconds>(world.timeline().random(150 * kMicrosecond)),
                          victim);
            Ended ended;
            const Ending ending = world.run([&ended](Rank& rank) { return one(rank, ended); });
            ASSERT_TRUE(ending.good()) << "rank " << victim << " dies; " << ending;
            const Status& survivor = ended.of[1 - victim];
            if (!survivor.ok()) ++failed;
            EXPECT_TRUE(victim == 1 || !survivor.ok() || ended.right) << "seed " << seed;
            ASSERT_TRUE(world.settle()) << "seed " << seed << ": something was left over";
        }
        EXPECT_GT(failed, 5) << "the deaths are to fall into the message";
    }
}

}  // namespace
}  // namespace gantry::world

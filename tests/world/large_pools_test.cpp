// SPDX-License-Identifier: BSD-3-Clause
//
// Pools of device slots of other sizes than the default (GANTRY_DEVICE_POOL): messages are told by flags
// as ever, as far as there are flags.
#include "world/harness/programs.hpp"

#include "transfer/notify_flags.hpp"
#include "p2p/wire.hpp"

namespace gantry::world {
namespace {

namespace wire = p2p::wire;

constexpr Bytes kOnePiece = 64 * kKiB;

Options staged(Bytes pool, bool flows) {
    return {.machine = "h200",
            .ranks_per_node = 2,
            .seed = 1,
            .jitter = kMicrosecond,
            .mechanisms = "all",
            .change_config = [pool, flows](config::Config& config) {
                config.ipc = false;
                config.chunk = 256 * kKiB;
                config.depth = 8;  // all of a message leaves before its verdict
                config.device_pool = pool;
                if (flows) config.idle_timeout = 50 * kMicrosecond;
            }};
}

std::uint64_t chunks(World& world) {
    return world.shared_memory().count(wire::kChunk).messages;
}

Task<Status> pass_some_on(Rank& rank, Bytes bytes) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; i < 20; ++i) {
        Status passed = co_await pass_on(rank, buffer, i);
        GANTRY_CO_TRY(passed);
    }
    co_return success();
}

TEST(LargePools, HaveFlagsForTheSlotsThatAreUsed) {
    for (const Bytes pool : {8 * kMiB, 16 * kMiB, 32 * kMiB, 48 * kMiB, 64 * kMiB, 256 * kMiB})
        for (const Bytes bytes : {kOnePiece, kMiB})
            for (const bool flows : {false, true}) {
                World world(staged(pool, flows));
                const Ending ending =
                    world.run([bytes](Rank& rank) { return pass_some_on(rank, bytes); });
                ASSERT_TRUE(ending.good()) << ending;
                ASSERT_TRUE(world.settle());
                EXPECT_EQ(chunks(world), 0u)
                    << bytes << " bytes, pool of " << pool << ", " << flows;
            }
}

// All of them are sent before the first is received.
constexpr std::uint64_t kMoreThanFlags = 300;
Task<Status> fill_more_than_have_flags(Rank& rank) {
    Bytebuffer buffer(rank, Place::device, kOnePiece, rank.number);
    if (rank.number == 0) {
        buffer.fill(1);
        std::vector<Result<p2p::Request*>> sends;
        for (std::uint64_t i = 0; i < kMoreThanFlags; ++i)
            sends.push_back(
                rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard));
        Status slept = co_await rank.sleep(rank.executor, 10 * kMillisecond);
        GANTRY_CO_TRY(slept);
        Status told = co_await send(rank, kNothing, 1, 1);
        GANTRY_CO_TRY(told);
        for (Result<p2p::Request*>& sending : sends) {
            Received sent = co_await finish(rank.executor, rank, std::move(sending));
            GANTRY_CO_TRY(sent.status);
        }
        co_return success();
    }
    Received token = co_await receive(rank, kNothing, 0, 1);
    GANTRY_CO_TRY(token.status);
    for (std::uint64_t i = 0; i < kMoreThanFlags; ++i) {
        buffer.clear();
        Received received = co_await receive(rank, buffer.whole(), 0, 0);
        GANTRY_CO_TRY(received.status);
        WORLD_CHECK(buffer.holds(1, kOnePiece));
    }
    co_return success();
}

TEST(LargePools, WhatLiesBehindTheLastFlagGoesByChunks) {
    World world(staged(128 * kMiB, false));  // 512 slots of them for copies ahead
    const Ending ending = world.run(&fill_more_than_have_flags);
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
    EXPECT_EQ(chunks(world), kMoreThanFlags - transfer::kSlotFlags);
}

}  // namespace
}  // namespace gantry::world

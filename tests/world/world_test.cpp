// SPDX-License-Identifier: BSD-3-Clause
//
// The world itself: that it repeats, that it notices when nothing can move, and that its fakes
// catch what they are there to catch.
#include "world/harness/programs.hpp"

#include <gmock/gmock.h>

#include <set>

namespace gantry::world {
namespace {

using testing::HasSubstr;

Task<Status> both_ways(Rank& rank) {
    const int other = 1 - rank.number;
    for (const Bytes bytes : {Bytes{8}, 64 * kKiB, Bytes{1000003}}) {
        Bytebuffer out(rank, Place::device, bytes), in(rank, Place::device, bytes);
        out.fill(static_cast<std::uint64_t>(rank.number));
        Result<p2p::Request*> receiving = rank.messenger.ireceive(rank.all, in.whole(), other, 5);
        Status sent = co_await send(rank, out.whole(), other, 5);
        Received received = co_await finish(rank.executor, rank, std::move(receiving));
        GANTRY_CO_TRY(sent);
        GANTRY_CO_TRY(received.status);
        WORLD_CHECK(in.holds(static_cast<std::uint64_t>(other), bytes));
    }
    co_return success();
}

struct Trace {
    std::uint64_t hash;
    Nanoseconds time;
};
Trace run_once(std::uint64_t seed) {
    World world({.ranks = 2, .seed = seed, .jitter = 20 * kMicrosecond});
    const Ending ending = world.run(both_ways);
    EXPECT_TRUE(ending.good()) << ending;
    return {world.trace_hash(), ending.time};
}

TEST(World, SameSeedGivesTheSameRun) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const Trace one = run_once(seed), again = run_once(seed);
        EXPECT_EQ(one.hash, again.hash) << "seed " << seed;
        EXPECT_EQ(one.time, again.time) << "seed " << seed;
    }
}

TEST(World, DifferentSeedsGiveDifferentRuns) {
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 1; seed <= 8; ++seed)
        hashes.insert(run_once(seed).hash);
    EXPECT_EQ(hashes.size(), 8u);
}

Task<Status> receive_what_nobody_sends(Rank& rank) {
    if (rank.number == 1) co_return success();
    Bytebuffer in(rank, Place::host, 123);
    Received received = co_await receive(rank, in.whole(), 1, 77);
    co_return received.status;
}

TEST(World, SaysWhoWaitsForWhatWhenNothingCanMove) {
    World world({.ranks = 2, .seed = 3});
    const Ending ending = world.run(receive_what_nobody_sends);
    EXPECT_TRUE(ending.stuck);
    EXPECT_THAT(ending.story, HasSubstr("rank 0: program waits"));
    EXPECT_THAT(ending.story, HasSubstr("rank 1: program ended"));
    EXPECT_THAT(ending.story, HasSubstr("receive of up to 123 bytes from 1 with tag 77"));
}

Task<Status> fence_late(Rank& rank) {
    Status put =
        rank.job.put("key", std::string(static_cast<std::size_t>(rank.number) * 1000, 'x'));
    GANTRY_CO_TRY(put);
    Status slept = co_await rank.sleep(rank.executor, rank.number * kMillisecond);
    GANTRY_CO_TRY(slept);
    Status fenced = co_await rank.job.fence(rank.executor);
    GANTRY_CO_TRY(fenced);
    WORLD_CHECK(rank.processor.now() >= 3 * kMillisecond);
    for (int other = 0; other < 4; ++other) {
        Result<std::string> value = rank.job.get(other, "key");
        WORLD_CHECK(value.ok() && value->size() == static_cast<std::size_t>(other) * 1000);
    }
    WORLD_CHECK(!rank.job.get(0, "no such key").ok());
    co_return success();
}

TEST(World, FenceOpensWhenTheLastRankComes) {
    World world({.ranks = 4, .ranks_per_node = 2, .seed = 1});
    const Ending ending = world.run(fence_late);
    EXPECT_TRUE(ending.good()) << ending;
}

Task<Status> ring(Rank& rank) {
    const int ranks = rank.all.size();
    const int next = (rank.number + 1) % ranks, previous = (rank.number + ranks - 1) % ranks;
    Bytebuffer out(rank, Place::device, 100000, rank.number % 8);
    Bytebuffer in(rank, Place::device, 100000, rank.number % 8);
    out.fill(static_cast<std::uint64_t>(rank.number));
    Result<p2p::Request*> receiving = rank.messenger.ireceive(rank.all, in.whole(), previous, 1);
    Status sent = co_await send(rank, out.whole(), next, 1);
    GANTRY_CO_TRY(sent);
    Received received = co_await finish(rank.executor, rank, std::move(receiving));
    GANTRY_CO_TRY(received.status);
    WORLD_CHECK(in.holds(static_cast<std::uint64_t>(previous), 100000));
    Status met = co_await meet(rank, 2);
    co_return met;
}

TEST(World, HoldsSixtyFourRanksOnEightNodesOfEightGpus) {
    World world({.machine = "h200",
                 .ranks = 64,
                 .ranks_per_node = 8,
                 .seed = 11,
                 .jitter = 3 * kMicrosecond,
                 .change_config = [](config::Config& config) { config.device_pool = kMiB; }});
    const Ending ending = world.run(ring);
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
}

TEST(FakeDevice, HostTouchOfDeviceMemoryFaultsAtOnce) {
    World world({.ranks = 1, .ranks_per_node = 1, .seed = 1});
    std::byte* memory = world.rank(0).device_memory(4096);
    EXPECT_DEATH(*const_cast<volatile std::byte*>(memory) = std::byte{1}, "");
}

Task<Status> overwrite_the_source(Rank& rank) {
    Bytebuffer source(rank, Place::device, kMiB), sink(rank, Place::pinned, kMiB);
    source.fill(1);
    Completion done(rank.executor);
    rank.device.copy({sink.address(), source.address(), kMiB, 0, device::Engine::automatic}, done);
    WORLD_CHECK(!sink.holds(1, kMiB));  // not there before its time
    source.fill(2);
    Status copied = co_await done;
    GANTRY_CO_TRY(copied);
    WORLD_CHECK(sink.holds(2, kMiB));
    co_return success();
}

TEST(FakeDevice, CopyTakesEffectAtItsEnd) {
    World world({.ranks = 1, .seed = 1});
    const Ending ending = world.run(overwrite_the_source);
    EXPECT_TRUE(ending.good()) << ending;
}

Task<Status> copy_out_of_bounds(Rank& rank) {
    Bytebuffer source(rank, Place::device, 100), sink(rank, Place::pinned, 200);
    Status status = co_await rank.driver_copy(rank.executor, sink.address(), source.address(), 101);
    WORLD_CHECK(!status.ok());
    WORLD_CHECK(!rank.device.classify(source.address(), 101).ok());
    co_return success();
}

TEST(FakeDevice, CopyBeyondItsAllocationFails) {
    World world({.ranks = 1, .seed = 1});
    const Ending ending = world.run(copy_out_of_bounds);
    EXPECT_TRUE(ending.good()) << ending;
}

Task<Status> copy_in_turn(Rank& rank) {
    // Both ranks share GPU 0: each copy inside it comes after the other process used it.
    Bytebuffer source(rank, Place::device, 8), sink(rank, Place::device, 8);
    for (int round = 0; round < 3; ++round) {
        Status copied =
            co_await rank.driver_copy(rank.executor, sink.address(), source.address(), 8);
        GANTRY_CO_TRY(copied);
    }
    co_return success();
}

TEST(FakeDevice, ProcessesThatShareAGpuPayForTheTurnOfItsQueue) {
    const auto time = [](int ranks) {
        World world({.machine = "h200", .ranks = ranks, .ranks_per_node = ranks, .seed = 1});
        const Ending ending = world.run(copy_in_turn);
        EXPECT_TRUE(ending.good()) << ending;
        return ending.time;
    };
    const Nanoseconds alone = time(1), together = time(2);
    EXPECT_LT(alone, 60 * kMicrosecond);
    EXPECT_GT(together, 500 * kMicrosecond);
}

}  // namespace
}  // namespace gantry::world

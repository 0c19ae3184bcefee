// SPDX-License-Identifier: BSD-3-Clause
//
// Opening a mapping takes long, as it does where a process has mapped much. Its peer waits for the
// message, frees its memory right behind it, or dies meanwhile.
#include "world/harness/programs.hpp"

namespace gantry::world {
namespace {

constexpr Nanoseconds kOpening = 5 * kMillisecond;
constexpr Bytes kBytes = 8 * kMiB;  // more than is copied ahead
constexpr int kAllocations = 4, kUses = 3;

Options two_gpus(std::uint64_t seed) {
    return {.machine = "h200",
            .ranks_per_node = 2,
            .seed = seed,
            .jitter = kMicrosecond,
            .change_machine =
                [](model::Machine& machine) {
                    machine.gpu.calls.ipc_pair = 0;
                    machine.gpu.calls.ipc_open = machine.gpu.calls.ipc_open_peer = kOpening;
                },
            .change_config =
                [](config::Config& config) {
                    config.ipc_threshold = 1;  // whatever it costs
                    config.ipc_cache_entries = 1;
                }};
}

std::uint64_t opens(World& world) {
    return world.rank(0).device.counts().opens + world.rank(1).device.counts().opens;
}
// A processor that makes a call is ahead of the world's clock until the call is over.
bool is_opening(World& world) {
    for (int rank = 0; rank < 2; ++rank)
        if (world.rank(rank).device.counts().opens > 0 &&
            world.rank(rank).processor.now() > world.timeline().now() + kMillisecond)
            return true;
    return false;
}

// Each allocation is freed as soon as its last message has left or come.
Task<Status> fresh_memory(Rank& rank) {
    for (int round = 0; round < kAllocations; ++round) {
        Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
        for (int use = 0; use < kUses; ++use) {
            Status passed =
                co_await pass_on(rank, buffer, static_cast<std::uint64_t>(kUses * round + use));
            GANTRY_CO_TRY(passed);
        }
    }
    co_return success();
}

TEST(SlowOpening, IsWaitedForByAPeerThatFreesItsMemoryRightBehind) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        World world(two_gpus(seed));
        const Ending ending = world.run(&fresh_memory);
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(opens(world), std::uint64_t{kAllocations});
        EXPECT_GE(world.rank(1).processor.now(), kAllocations * kOpening);
    }
}

// --- the peer dies meanwhile --------------------------------------------------------------------

Task<Status> one_message(Rank& rank, const std::function<void(Rank&)>& begins) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Bytebuffer small(rank, Place::host, 8);
    if (rank.number == 0) {
        buffer.fill(1);
        begins(rank);
        Status sent = co_await send(rank, buffer.whole(), 1, 1);
        WORLD_CHECK(sent.ok() || sent.error_class() == MPI_ERR_PROC_ABORTED);
    } else {
        Received received = co_await receive(rank, buffer.whole(), 0, 1);
        WORLD_CHECK(received.status.ok() ? buffer.holds(1, kBytes)
                                         : received.status.error_class() == MPI_ERR_PROC_ABORTED);
    }
    Status slept = co_await rank.sleep(rank.executor, 20 * kMillisecond);
    GANTRY_CO_TRY(slept);
    Status later = co_await send(rank, small.whole(), 1 - rank.number, 2);
    WORLD_CHECK(!later.ok());
    co_return success();
}

TEST(SlowOpening, OfADeadPeersMemoryEndsTheMessage) {
    constexpr int kDeaths = 20;
    for (const int victim : {0, 1}) {
        int meanwhile = 0;
        for (std::uint64_t seed = 1; seed <= kDeaths; ++seed) {
            World world(two_gpus(seed));
            const auto when = static_cast<Nanoseconds>(world.timeline().random(kOpening * 5 / 4));
            const auto die = [&] {
                if (is_opening(world)) ++meanwhile;
                world.kill(victim);
            };
            const std::function<void(Rank&)> begins = [&](Rank& rank) {
                world.timeline().at(rank.processor.now() + when, die);
            };
            const Ending ending =
                world.run([&begins](Rank& rank) { return one_message(rank, begins); });
            ASSERT_TRUE(ending.good()) << "rank " << victim << " dies; " << ending;
            ASSERT_TRUE(world.settle()) << "rank " << victim << " dies, seed " << seed;
        }
        EXPECT_GE(meanwhile, kDeaths / 4) << "rank " << victim << " hardly died in an opening";
    }
}

}  // namespace
}  // namespace gantry::world

// SPDX-License-Identifier: BSD-3-Clause
//
// What polling costs while a peer is idle: nothing is asked of the device, but for a look at
// exported memory now and then, which is counted apart.
#include "world/harness/programs.hpp"

namespace gantry::world {
namespace {

using device::fake::Counts;

constexpr Nanoseconds kIdle = 100 * kMillisecond;
constexpr Nanoseconds kBetweenLooks = 10 * kMillisecond;  // at exported memory

struct Idle {
    bool mapped;  // messages went before, by a mapping that is still open
    int polls = 0;
    Counts counts[2] = {};
};

Task<Status> poll_an_idle_peer(Rank& rank, Idle& test) {
    Bytebuffer buffer(rank, Place::device, 64 * kKiB, rank.number);
    for (std::uint64_t i = 0; test.mapped && i < 4; ++i) {
        if (rank.number == 1) {
            buffer.fill(i);
            Status sent = co_await send(rank, buffer.whole(), 0, 1);
            GANTRY_CO_TRY(sent);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 1, 1);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(i, buffer.bytes()));
        }
    }
    Result<p2p::Request*> posted(nullptr);
    if (rank.number == 0) posted = rank.messenger.ireceive(rank.all, buffer.whole(), 1, 2);
    Status met = co_await meet(rank, 7);
    GANTRY_CO_TRY(met);
    rank.device.reset_counts();
    if (rank.number == 0) {
        const Nanoseconds begin = rank.processor.now();
        for (; rank.processor.now() < begin + kIdle; ++test.polls) {
            WORLD_CHECK(!posted.value()->done);
            WORLD_CHECK(rank.messenger.probe(rank.all, 1, MPI_ANY_TAG).message == nullptr);
            co_await rank.turn();
        }
        test.counts[0] = rank.device.counts();
        met = co_await meet(rank, 8);
        GANTRY_CO_TRY(met);
        Received received = co_await finish(rank.executor, rank, std::move(posted));
        co_return received.status;
    }
    Status slept = co_await rank.sleep(rank.executor, kIdle);
    GANTRY_CO_TRY(slept);
    test.counts[1] = rank.device.counts();
    met = co_await meet(rank, 8);
    GANTRY_CO_TRY(met);
    Status sent = co_await send(rank, buffer.whole(), 0, 2);
    co_return sent;
}

Idle run(bool mapped) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .change_config = [](config::Config& config) { config.ipc_threshold = 1; }});
    Idle test{.mapped = mapped, .polls = 0, .counts = {}};
    const Ending ending = world.run([&test](Rank& rank) { return poll_an_idle_peer(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something was left over";
    EXPECT_GT(test.polls, 1000);
    for (const Counts& counts : test.counts) {
        EXPECT_EQ(counts.looks, 0u) << "completion queries";
        EXPECT_EQ(counts.classified, 0u);
        EXPECT_EQ(counts.all_copies() + counts.launches, 0u);
        EXPECT_EQ(counts.exports + counts.opens, 0u);
    }
    return test;
}

TEST(Idle, PollingAsksTheDeviceNothing) {
    const Idle test = run(false);
    EXPECT_EQ(test.counts[0].rechecks, 0u);
    EXPECT_EQ(test.counts[1].rechecks, 0u) << "nothing was exported";
}

TEST(Idle, ExportedMemoryIsLookedAtNowAndThenAndThatIsCountedApart) {
    const Idle test = run(true);
    EXPECT_EQ(test.counts[0].rechecks, 0u) << "the receiver exported nothing";
    EXPECT_NEAR(static_cast<double>(test.counts[1].rechecks), kIdle / kBetweenLooks, 1);
}

}  // namespace
}  // namespace gantry::world

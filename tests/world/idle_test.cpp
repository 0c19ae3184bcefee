// SPDX-License-Identifier: BSD-3-Clause
//
// What polling costs while a peer is idle: nothing is asked of the device, but for a look at
// exported memory now and then, which is counted apart.
#include "world/harness/programs.hpp"

#include <memory>
#include <vector>

namespace gantry::world {
namespace {

using device::fake::Counts;

constexpr Nanoseconds kIdle = 100 * kMillisecond;
constexpr Nanoseconds kBetweenLooks = 10 * kMillisecond;  // at exported memory

constexpr int kMostInOneLook = 256;

struct Idle {
    int mapped;  // buffers that messages went from before, by mappings that are still open
    int polls = 0;
    Counts counts[2] = {};
};

Task<Status> poll_an_idle_peer(Rank& rank, Idle& test) {
    Bytebuffer buffer(rank, Place::device, 4 * kKiB, rank.number);
    std::vector<std::unique_ptr<Bytebuffer>> sources;
    for (int i = 0; i < 4 * test.mapped; ++i) {
        if (rank.number == 1) {
            if (i % 4 == 0)
                sources.push_back(std::make_unique<Bytebuffer>(rank, Place::device, 4 * kKiB, 1));
            sources.back()->fill(static_cast<std::uint64_t>(i));
            Status sent = co_await send(rank, sources.back()->whole(), 0, 1);
            GANTRY_CO_TRY(sent);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 1, 1);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(i), buffer.bytes()));
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

Idle run(int mapped) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .mechanisms = "all",
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
    const Idle test = run(0);
    EXPECT_EQ(test.counts[0].rechecks, 0u);
    EXPECT_EQ(test.counts[1].rechecks, 0u) << "nothing was exported";
}

TEST(Idle, ExportedMemoryIsLookedAtNowAndThenAndThatIsCountedApart) {
    const Idle test = run(1);
    EXPECT_EQ(test.counts[0].rechecks, 0u) << "the receiver exported nothing";
    EXPECT_NEAR(static_cast<double>(test.counts[1].rechecks), kIdle / kBetweenLooks, 1);
}

// A look takes a while, and messages wait for it.
TEST(Idle, OfMuchExportedMemoryEachLookTakesAPart) {
    const Idle test = run(2 * kMostInOneLook);
    const auto looks = static_cast<double>(kIdle / kBetweenLooks);
    EXPECT_NEAR(static_cast<double>(test.counts[1].rechecks), kMostInOneLook * looks,
                kMostInOneLook);
}

}  // namespace
}  // namespace gantry::world

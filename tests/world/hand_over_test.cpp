// SPDX-License-Identifier: BSD-3-Clause
//
// What a call that only posts leaves to a thread that watches the engine (base/executor.hpp,
// HandOver): no copy starts inside the call, the next turn starts it, and the message is right.
#include "world/harness/programs.hpp"

namespace gantry::world {
namespace {

constexpr Bytes kBytes = 256 * kKiB;

// Copies that the sender's Isend and the receiver's Irecv started themselves.
struct Started {
    std::uint64_t in_isend = 0, in_irecv = 0;
};

Task<Status> post_and_wait(Rank& rank, bool watched, Started& started) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    if (rank.number == 0) buffer.fill(5);
    rank.executor.set_watched(watched);
    Result<p2p::Request*> request = nullptr;
    if (rank.number == 0) {
        const std::uint64_t before = rank.device.counts().all_copies();
        {
            const HandOver hand_over(rank.executor);
            request = rank.messenger.isend(rank.all, buffer.whole(), 1, 3, p2p::SendMode::standard);
        }
        started.in_isend = rank.device.counts().all_copies() - before;
    } else {
        // The message is there before its receive, with all that it brings.
        while (rank.messenger.probe(rank.all, 0, 3).message == nullptr)
            co_await rank.turn();
        Status waited = co_await rank.sleep(rank.executor, kMillisecond);
        GANTRY_CO_TRY(waited);
        const std::uint64_t before = rank.device.counts().all_copies();
        {
            const HandOver hand_over(rank.executor);
            request = rank.messenger.ireceive(rank.all, buffer.whole(), 0, 3);
        }
        started.in_irecv = rank.device.counts().all_copies() - before;
    }
    Received ended = co_await finish(rank.executor, rank, std::move(request));
    GANTRY_CO_TRY(ended.status);
    if (rank.number == 1) WORLD_CHECK(buffer.holds(5, kBytes));
    co_return success();
}

Started started(bool watched) {
    Options options{.machine = "h200", .ranks_per_node = 2, .seed = 4};
    options.change_config = [](config::Config& config) { config.ipc = false; };
    World world(options);
    Started seen;
    const Ending ending = world.run([&](Rank& rank) { return post_and_wait(rank, watched, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something was left over";
    return seen;
}

TEST(HandOver, AWatchedPostStartsNoCopyItself) {
    const Started alone = started(false);
    EXPECT_GT(alone.in_isend, 0u);
    EXPECT_GT(alone.in_irecv, 0u);
    const Started watched = started(true);
    EXPECT_EQ(watched.in_isend, 0u);
    EXPECT_EQ(watched.in_irecv, 0u);
}

}  // namespace
}  // namespace gantry::world

// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of device messages between two GPUs of a node: many small ones share a kernel, large ones
// are put by the sender's GPU.
#include "world/harness/programs.hpp"

#include <deque>

namespace gantry::world {
namespace {

using model::Operation;

struct Window {
    Bytes bytes;
    int messages;
    int rounds;
    Nanoseconds last = 0;  // of the last round: from the first post to the last receive
};

// Message i of a round has its own place in one allocation, and its own bytes.
Task<Status> windows(Rank& rank, Window& test) {
    const auto count = static_cast<Bytes>(test.messages);
    Bytebuffer buffer(rank, Place::device, test.bytes * count, rank.number);
    for (int round = 0; round < test.rounds; ++round) {
        if (rank.number == 0)
            buffer.fill(static_cast<std::uint64_t>(round));
        else
            buffer.clear();
        Status met = co_await meet(rank, 1000 + round);
        GANTRY_CO_TRY(met);
        rank.device.reset_counts();
        const Nanoseconds begin = rank.processor.now();
        std::deque<Result<p2p::Request*>> requests;
        for (Bytes i = 0; i < count; ++i) {
            const p2p::Buffer part = buffer.part(i * test.bytes, test.bytes);
            if (rank.number == 0)
                requests.push_back(rank.messenger.isend(rank.all, part, 1, static_cast<int>(i),
                                                        p2p::SendMode::standard));
            else
                requests.push_back(rank.messenger.ireceive(rank.all, part, 0, static_cast<int>(i)));
        }
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(ended.status);
        }
        test.last = rank.processor.now() - begin;
        if (rank.number != 1) continue;
        WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), test.bytes * count));
    }
    co_return success();
}

struct Counts {
    std::uint64_t gets = 0, puts = 0, launches = 0, staged = 0;
};

Counts run(Window& test, bool kernels = true) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .seed = 5,
                 .change_config = [kernels](config::Config& config) { config.kernels = kernels; }});
    const Ending ending = world.run([&test](Rank& rank) { return windows(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    Counts counts;
    for (int rank = 0; rank < 2; ++rank) {
        const device::fake::Counts& each = world.rank(rank).device.counts();
        counts.gets += each.copies[static_cast<int>(Operation::peer_get)];
        counts.puts += each.copies[static_cast<int>(Operation::peer)];
        counts.launches += each.launches;
        counts.staged += each.copies[static_cast<int>(Operation::d2h)];
    }
    return counts;
}

TEST(Window, SmallMessagesTakeOneCopyAndAtMostThreeLaunches) {
    for (const Bytes bytes : {Bytes{8}, 8 * kKiB, 64 * kKiB}) {
        Window test{bytes, 64, 12};
        const Counts counts = run(test);
        EXPECT_EQ(counts.staged, 0u) << bytes;
        EXPECT_EQ(counts.gets, 1u) << bytes << ": what finds nothing in flight goes at once";
        EXPECT_LE(counts.launches, 3u) << bytes;
        EXPECT_GE(counts.launches, 1u) << bytes;
        if (bytes != 8) continue;
        EXPECT_LE(test.last, 64 * 700) << "0.7 us a message";
    }
}

TEST(Window, WithoutKernelsEachMessageIsACopy) {
    Window test{8, 64, 12};
    const Counts counts = run(test, false);
    EXPECT_EQ(counts.gets, 64u);
    EXPECT_EQ(counts.launches, 0u);
}

TEST(Window, LargeMessagesArePutByTheSender) {
    Window test{4 * kMiB, 4, 3};
    const Counts counts = run(test);
    EXPECT_EQ(counts.puts, 4u);
    EXPECT_EQ(counts.gets + counts.launches + counts.staged, 0u);
}

}  // namespace
}  // namespace gantry::world

// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of device messages between two GPUs of a node: many small ones share a kernel, large ones
// are read by the receiver one by one.
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

// A copy that fails ends its own message, with an error on both sides, and no other.
struct Broken {
    int failed[2] = {};  // requests, by rank
    int right = 0;       // messages that hold what they should
};

Task<Status> window_with_a_broken_copy(Rank& rank, Broken& seen) {
    constexpr Bytes kBytes = 8 * kKiB;
    constexpr int kMessages = 16;
    constexpr int kLast = 40;  // those before it open the memory and teach the short way
    Bytebuffer buffer(rank, Place::device, kBytes * kMessages, rank.number);
    for (int round = 0; round <= kLast; ++round) {
        if (rank.number == 0) buffer.fill(7);
        Status met = co_await meet(rank, 1000 + round);
        GANTRY_CO_TRY(met);
        if (rank.number == 1 && round == kLast) rank.device.faults.fail_copy = 1;
        std::deque<Result<p2p::Request*>> requests;
        for (int i = 0; i < kMessages; ++i) {
            const p2p::Buffer part = buffer.part(static_cast<Bytes>(i) * kBytes, kBytes);
            if (rank.number == 0)
                requests.push_back(
                    rank.messenger.isend(rank.all, part, 1, i, p2p::SendMode::standard));
            else
                requests.push_back(rank.messenger.ireceive(rank.all, part, 0, i));
        }
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            if (!ended.status.ok()) {
                ++seen.failed[rank.number];
                WORLD_CHECK(round == kLast);
            } else if (rank.number == 1 && round == kLast) {
                ++seen.right;
            }
        }
    }
    co_return success();
}

TEST(Window, ACopyThatFailsIsAnErrorOfItsMessageOnBothSides) {
    World world({.machine = "h200", .ranks_per_node = 2, .seed = 5});
    Broken seen;
    const Ending ending =
        world.run([&seen](Rank& rank) { return window_with_a_broken_copy(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.failed[0], 1);
    EXPECT_EQ(seen.failed[1], 1);
    EXPECT_EQ(seen.right, 15);
    EXPECT_TRUE(world.settle()) << "something was left over";
}

// Nothing keeps a send that only waits for its answer in MPI, but a request that was given back
// must not be forgotten.
Task<Status> send_and_leave(Rank& rank) {
    Bytebuffer buffer(rank, Place::device, 64 * kKiB, rank.number);
    buffer.fill(3);
    Status met = co_await meet(rank, 1);
    GANTRY_CO_TRY(met);
    if (rank.number == 0) {
        Result<p2p::Request*> sent =
            rank.messenger.isend(rank.all, buffer.whole(), 1, 5, p2p::SendMode::standard);
        GANTRY_CO_TRY(sent.status());
        rank.messenger.release(*sent);
        Status drained = co_await rank.messenger.drain(rank.executor);
        co_return drained;
    }
    buffer.clear();
    Received got = co_await receive(rank, buffer.whole(), 0, 5);
    GANTRY_CO_TRY(got.status);
    WORLD_CHECK(buffer.holds(3, 64 * kKiB));
    co_return success();
}

TEST(Window, ASendWhoseRequestWasFreedIsDrained) {
    World world({.machine = "h200", .ranks_per_node = 2, .seed = 5});
    const Ending ending = world.run([](Rank& rank) { return send_and_leave(rank); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something was left over";
}

TEST(Window, WithoutKernelsEachMessageIsACopy) {
    Window test{8, 64, 12};
    const Counts counts = run(test, false);
    EXPECT_EQ(counts.gets, 64u);
    EXPECT_EQ(counts.launches, 0u);
}

TEST(Window, LargeMessagesAreGotByTheReceiver) {
    Window test{4 * kMiB, 4, 12};  // opening the other GPU's memory repays itself after 20 messages
    const Counts counts = run(test);
    EXPECT_EQ(counts.gets, 4u);
    EXPECT_EQ(counts.puts + counts.launches + counts.staged, 0u);
}

}  // namespace
}  // namespace gantry::world

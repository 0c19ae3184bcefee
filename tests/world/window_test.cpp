// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of device messages between two GPUs of a node: many small ones share a kernel, larger ones
// a call for copy engines.
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <deque>

namespace gantry::world {
namespace {

using model::Operation;

Options two_gpus(std::uint64_t seed) {
    return {.machine = "h200", .ranks_per_node = 2, .seed = seed, .mechanisms = "all"};
}

struct Window {
    Bytes bytes;
    int messages;
    int rounds;
    bool host_receive = false;  // rank 1 waits for something else, too, all the time
    bool one_gpu = false;       // both ranks use GPU 0, as under MPS: its queue takes no turns
    Nanoseconds last = 0;       // of the last round: from the first post to the last receive
};

// Message i of a round has its own place in one allocation, and its own bytes.
Task<Status> windows(Rank& rank, Window& test) {
    const auto count = static_cast<Bytes>(test.messages);
    Bytebuffer buffer(rank, Place::device, test.bytes * count, test.one_gpu ? 0 : rank.number);
    p2p::Request* other = nullptr;
    if (test.host_receive && rank.number == 1) {
        Result<p2p::Request*> posted =
            rank.messenger.ireceive(rank.all, kNothing, MPI_ANY_SOURCE, 5000);
        GANTRY_CO_TRY(posted.status());
        other = *posted;
    }
    for (int round = 0; round < test.rounds; ++round) {
        if (rank.number == 0)
            buffer.fill(static_cast<std::uint64_t>(round));
        else
            buffer.clear();
        Status met = co_await meet(rank, 1000 + round);
        GANTRY_CO_TRY(met);
        rank.device.reset_counts();
        // No message leaves before all receives are posted.
        if (rank.number == 0) {
            Received posted = co_await receive(rank, kNothing, 1, 2000 + round);
            GANTRY_CO_TRY(posted.status);
        }
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
        if (rank.number == 1) {
            Status told = co_await send(rank, kNothing, 0, 2000 + round);
            GANTRY_CO_TRY(told);
        }
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(ended.status);
        }
        test.last = rank.processor.now() - begin;
        if (rank.number != 1) continue;
        WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), test.bytes * count));
    }
    if (other != nullptr) {
        WORLD_CHECK(rank.messenger.cancel(*other));
        rank.messenger.release(other);
    }
    co_return success();
}

struct Counts {
    std::uint64_t gets = 0, puts = 0, launches = 0, calls_for_several = 0, staged = 0;
};

Counts run(Window& test, bool kernels = true) {
    Options options = two_gpus(5);
    options.change_config = [kernels](config::Config& config) { config.kernels = kernels; };
    if (test.one_gpu) options.change_machine = [](model::Machine& h200) { h200.gpu.turn = 0; };
    World world(std::move(options));
    const Ending ending = world.run([&test](Rank& rank) { return windows(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    Counts counts;
    for (int rank = 0; rank < 2; ++rank) {
        const device::fake::Counts& each = world.rank(rank).device.counts();
        counts.gets += each.copies[static_cast<int>(Operation::peer_get)];
        counts.puts += each.copies[static_cast<int>(Operation::peer)];
        counts.launches += each.launches;
        counts.calls_for_several += each.calls_for_several;
        counts.staged += each.copies[static_cast<int>(Operation::d2h)];
    }
    return counts;
}

TEST(Window, SmallMessagesTakeOneCopyAndAtMostThreeLaunches) {
    for (const Bytes bytes : {Bytes{8}, 8 * kKiB, 64 * kKiB}) {
        Window test{bytes, 64, 12};
        const Counts counts = run(test);
        EXPECT_EQ(counts.staged, 0u) << bytes;
        EXPECT_LE(counts.gets, 1u) << bytes << ": one that found nothing in flight";
        EXPECT_LE(counts.launches, 3u) << bytes;
        EXPECT_GE(counts.launches, 1u) << bytes;
        if (bytes != 8) continue;
        EXPECT_LE(test.last, 64 * 400) << "0.4 us a message";
    }
}

TEST(Window, LargerMessagesTakeFewCalls) {
    Window quarter{256 * kKiB, 32, 20};
    const Counts kernels = run(quarter);
    EXPECT_LE(kernels.launches, 5u) << "as 2 MiB have come";
    EXPECT_LE(quarter.last, 32 * 1300) << "1.3 us a message: 201 GB/s";
    Window whole{1 * kMiB, 32, 20};
    const Counts calls = run(whole);
    EXPECT_EQ(calls.gets, 32u);
    EXPECT_LE(whole.last, 32 * 5200) << "5.2 us a message: 202 GB/s";
    EXPECT_LE(calls.calls_for_several, 8u);
    EXPECT_GE(calls.calls_for_several, 1u);
    EXPECT_LE(calls.launches + calls.staged + calls.puts, 0u);
    Window huge{32 * kMiB, 2, 4};
    EXPECT_EQ(run(huge).calls_for_several, 0u) << "the first would be told with the last";
}

TEST(Window, WithoutKernelsMessagesShareCalls) {
    for (const Bytes bytes : {Bytes{8}, 64 * kKiB}) {
        Window test{bytes, 32, 20};
        const Counts counts = run(test, false);
        EXPECT_EQ(counts.launches, 0u) << bytes;
        EXPECT_EQ(counts.gets, 32u) << bytes;
        EXPECT_GE(counts.calls_for_several, 1u) << bytes;
        EXPECT_LE(counts.calls_for_several, 3u) << bytes;
    }
}

// With the last message that a receive is posted for, all that wait are launched: nothing waits for
// copies in flight.
TEST(Window, OfThirtyTwoMessagesTheLastDoesNotWaitForTheFirst) {
    for (const Bytes bytes : {Bytes{8}, 8 * kKiB}) {
        Window test{bytes, 32, 20};
        const Counts counts = run(test);
        EXPECT_LE(counts.gets, 1u) << bytes;
        EXPECT_LE(counts.launches, 2u) << bytes;
        EXPECT_LE(test.last, 32 * 600) << bytes;
    }
}

// Under MPS a GPU that both ranks use is as good as two.
TEST(Window, InsideAGpuWithoutTurnsTheSameLaunchesDo) {
    for (const int messages : {32, 64}) {
        Window test{.bytes = 8, .messages = messages, .rounds = 20, .one_gpu = true};
        const Counts counts = run(test);
        EXPECT_EQ(counts.staged, 0u) << messages;
        EXPECT_LE(counts.launches, 3u) << messages;
        EXPECT_GE(counts.launches, 1u) << messages;
        EXPECT_LE(test.last, messages * 600) << messages;
    }
}

TEST(Window, AReceiveIntoHostMemoryThatWaitsHoldsNothingUp) {
    Window test{8, 32, 20, true};
    EXPECT_LE(run(test).launches, 2u);
    EXPECT_LE(test.last, 32 * 600);
}

// A copy that fails ends its own message, with an error on both sides, and no other.
struct Broken {
    int failed[2] = {};  // requests, by rank
    int right = 0;       // messages that hold what they should
};

Task<Status> window_with_a_broken_copy(Rank& rank, Broken& seen) {
    constexpr Bytes kBytes = 8 * kKiB;
    constexpr int kMessages = 16;
    constexpr int kLast = 40;  // those before it open the memory and fill the selection cache
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
    World world(two_gpus(5));
    Broken seen;
    const Ending ending =
        world.run([&seen](Rank& rank) { return window_with_a_broken_copy(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.failed[0], 1);
    EXPECT_EQ(seen.failed[1], 1);
    EXPECT_EQ(seen.right, 15);
    EXPECT_TRUE(world.settle()) << "something was left over";
}

// The reads of a window share an opened mapping: not one that went meanwhile.
Task<Status> windows_whose_mapping_goes(Rank& rank, bool& lost) {
    constexpr Bytes kBytes = 4 * kMiB;
    constexpr int kLast = 40;  // those before it open the memory and fill the selection cache
    Bytebuffer buffer(rank, Place::device, 2 * kBytes, rank.number);
    for (int round = 0; round <= kLast; ++round) {
        if (rank.number == 0) buffer.fill(static_cast<std::uint64_t>(round));
        Status met = co_await meet(rank, 1000 + round);
        GANTRY_CO_TRY(met);
        std::deque<Result<p2p::Request*>> requests;
        for (int i = 0; i < 2; ++i) {
            const p2p::Buffer part = buffer.part(static_cast<Bytes>(i) * kBytes, kBytes);
            // The second leaves while the first is read.
            while (rank.number == 0 && round == kLast && i == 1 && !lost)
                co_await rank.turn();
            requests.push_back(rank.number == 0 ? rank.messenger.isend(rank.all, part, 1, i,
                                                                       p2p::SendMode::standard)
                                                : rank.messenger.ireceive(rank.all, part, 0, i));
        }
        if (rank.number == 1 && round == kLast) {
            while (rank.device.in_flight() == 0)
                co_await rank.turn();
            WORLD_CHECK(rank.device.counts().opens == 1);
            rank.device.lose_mappings();
            lost = true;
        }
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(ended.status);
        }
        if (rank.number == 1)
            WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), 2 * kBytes));
    }
    co_return success();
}

TEST(Window, AMappingThatWentWhileItWasReadIsOpenedAgain) {
    World world(two_gpus(5));
    bool lost = false;
    const Ending ending =
        world.run([&lost](Rank& rank) { return windows_whose_mapping_goes(rank, lost); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(lost);
    EXPECT_TRUE(world.settle()) << "something was left over";
}

// What is sent in short may end in another way than the last message did: in host memory, in
// a strided or a short buffer, in the middle of a window.
Task<Status> windows_of_all_kinds(Rank& rank) {
    constexpr Bytes kBytes = 4 * kKiB;
    constexpr int kMessages = 300;  // more than the table of unread ones holds
    Bytebuffer device(rank, Place::device, kBytes * kMessages, rank.number);
    Bytebuffer host(rank, Place::host, kBytes * kMessages, rank.number);
    for (int round = 0; round < 6; ++round) {
        if (rank.number == 0) device.fill(static_cast<std::uint64_t>(round));
        Status met = co_await meet(rank, 1000 + round);
        GANTRY_CO_TRY(met);
        std::deque<Result<p2p::Request*>> requests;
        for (int i = 0; i < kMessages; ++i) {
            const Bytes offset = static_cast<Bytes>(i) * kBytes;
            const p2p::Buffer part = device.part(offset, kBytes);
            if (rank.number == 0)
                requests.push_back(
                    rank.messenger.isend(rank.all, part, 1, i, p2p::SendMode::standard));
            else if (i % 3 == 1)
                requests.push_back(
                    rank.messenger.ireceive(rank.all, host.part(offset, kBytes), 0, i));
            else if (i % 5 == 2)
                requests.push_back(
                    rank.messenger.ireceive(rank.all, device.part(offset, kBytes / 2), 0, i));
            else
                requests.push_back(rank.messenger.ireceive(rank.all, part, 0, i));
        }
        int i = -1;
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            ++i;
            const bool truncated = rank.number == 1 && i % 3 != 1 && i % 5 == 2;
            WORLD_CHECK(ended.status.error_class() == (truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
        }
    }
    co_return success();
}

TEST(Window, AMessageSentInShortMayEndInAnotherWayThanTheLastOne) {
    World world(two_gpus(5));
    const Ending ending = world.run([](Rank& rank) { return windows_of_all_kinds(rank); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something was left over";
}

// A window in flight when its peer dies: every request ends, also what only waits to be read.
struct Cut {
    int ended = 0, failed = 0;  // of the rank that lives
};

Task<Status> windows_until_the_other_dies(Rank& rank, Cut& cut) {
    constexpr Bytes kBytes = 64;
    constexpr int kMessages = 64;
    Bytebuffer buffer(rank, Place::device, kBytes * kMessages, rank.number);
    while (cut.failed == 0) {
        std::deque<Result<p2p::Request*>> requests;
        for (int i = 0; i < kMessages; ++i) {
            const p2p::Buffer part = buffer.part(static_cast<Bytes>(i) * kBytes, kBytes);
            requests.push_back(rank.number == 0 ? rank.messenger.isend(rank.all, part, 1, i,
                                                                       p2p::SendMode::standard)
                                                : rank.messenger.ireceive(rank.all, part, 0, i));
        }
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            ++cut.ended;
            if (!ended.status.ok()) ++cut.failed;
        }
    }
    co_return success();
}

TEST(Window, DeathOfThePeerEndsEveryMessageOfAWindow) {
    for (const int victim : {0, 1}) {
        for (std::uint64_t seed = 1; seed <= repetitions(10); ++seed) {
            World world(two_gpus(seed));
            world.kill_at(5 * kMillisecond +
                              static_cast<Nanoseconds>(world.timeline().random(100 * kMicrosecond)),
                          victim);
            Cut cut[2];
            const Ending ending = world.run([&cut](Rank& rank) {
                return windows_until_the_other_dies(rank, cut[rank.number]);
            });
            ASSERT_TRUE(ending.good()) << "rank " << victim << " dies; " << ending;
            ASSERT_TRUE(world.settle()) << "rank " << victim << " dies, seed " << seed;
            EXPECT_GT(cut[1 - victim].ended, 640) << "windows were under way before";
            EXPECT_GT(cut[1 - victim].failed, 0);
        }
    }
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
    World world(two_gpus(5));
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

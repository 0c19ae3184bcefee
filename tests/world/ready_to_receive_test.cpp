// SPDX-License-Identifier: BSD-3-Clause
//
// Ready-to-receive (p2p/protocols/put_after_rtr.cpp): a blocking receive between two GPUs names
// its buffer, and a sender that has mapped it puts at once. Counted, failed, overtaken and mixed
// with everything that must not be put.
#include "sanitized.hpp"
#include "p2p/wire.hpp"
#include "world/harness/ready_to_receive.hpp"

namespace gantry::world {
namespace {

struct Seen {
    std::uint64_t puts = 0, gets = 0;
    std::uint64_t opened_again = 0;
    Status ended[2];
};

Task<Status> learnt(Rank& rank, Seen& seen) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    for (int round = 0; round < 10; ++round) {
        Status done = co_await one(rank, buffer, kLearn + round);
        GANTRY_CO_TRY(done);
    }
    seen.puts += puts(rank);
    seen.gets += gets(rank);
    seen.opened_again += rank.device.counts().opens_again;
    co_return success();
}

TEST(ReadyToReceive, EachMessageIsOnePutOnceTheMappingHasRepaidItself) {
    for (const std::uint64_t seed : {3, 4}) {
        World world(two_gpus(seed));
        Seen seen;
        const Ending ending = world.run([&seen](Rank& rank) { return learnt(rank, seen); });
        EXPECT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle()) << "something was left over";
        EXPECT_EQ(seen.puts, 10u) << seed;
        EXPECT_EQ(seen.gets, 0u) << seed;
        EXPECT_EQ(seen.opened_again, 10u) << "recorded or not";
    }
}

Task<Status> refused_requests(Rank& rank, int& refuse) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    for (int round = 0; round < 10; ++round) {
        if (rank.number == 0) refuse = round % 2;
        Status done = co_await one(rank, buffer, kLearn + round);
        GANTRY_CO_TRY(done);
    }
    co_return success();
}

// Its envelope is counted, so nothing behind it could be understood.
TEST(ReadyToReceive, ARequestThatCannotLeaveBesideItsPutGoesBehindIt) {
    for (const std::uint64_t seed : {3, 4}) {
        int refuse = 0, refused = 0;
        Options options = two_gpus(seed);
        options.on_send_in_node = [&](int, transport::MessageKind kind) {
            if (kind != p2p::wire::kPutRequest || refuse == 0) return success();
            --refuse;
            ++refused;
            return failure(MPI_ERR_NO_MEM, "no room for it");
        };
        World world(options);
        const Ending ending =
            world.run([&refuse](Rank& rank) { return refused_requests(rank, refuse); });
        EXPECT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle()) << "something was left over";
        EXPECT_EQ(refused, 5);
        EXPECT_EQ(puts(world.rank(0)), 10u);
    }
}

// Where a get is as fast no RTR is sent.
TEST(ReadyToReceive, NothingIsPutWhereAGetCostsNoMore) {
    Options options = two_gpus();
    options.change_machine = [](model::Machine& machine) {
        machine.gpu.calls.ipc_pair = 0;
        machine.gpu.calls.ipc_open_peer = 20 * kMicrosecond;
        machine.gpu.peer_get = machine.gpu.peer;
    };
    World world(options);
    Seen seen;
    const Ending ending = world.run([&seen](Rank& rank) { return learnt(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.puts, 0u);
    EXPECT_EQ(seen.gets, 10u);
}

TEST(ReadyToReceive, AnExpensiveMappingIsNotOpenedForSoFew) {
    Options options = two_gpus();
    options.change_machine = [](model::Machine& machine) {
        machine.gpu.calls.ipc_pair = 0;
        machine.gpu.calls.ipc_open_peer = 400 * kMicrosecond;  // 400 times what a put saves
    };
    World world(options);
    Seen seen;
    const Ending ending = world.run([&seen](Rank& rank) { return learnt(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.puts, 0u);
    EXPECT_EQ(world.rank(0).device.counts().opens, 0u);
}

// Its receiver always finds the message there. What it announces too late counts towards the mapping: the
// first of those that wait for their message are put.
Task<Status> late_then_waiting(Rank& rank, Seen& seen) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    for (int round = 0; round < 400; ++round) {
        if (rank.number == 0) {
            buffer.fill(static_cast<std::uint64_t>(round));
            Status sent = co_await send_and_wait(rank, buffer.whole(), 1, 7);
            GANTRY_CO_TRY(sent);
        } else {
            Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
            GANTRY_CO_TRY(slept);
            Received got = co_await receive_and_wait(rank, buffer.whole(), 0, 7);
            GANTRY_CO_TRY(got.status);
            WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), kBytes));
        }
        Status met = co_await meet(rank, 3000 + round);
        GANTRY_CO_TRY(met);
    }
    rank.device.reset_counts();
    for (int round = 0; round < 100; ++round) {
        Status done = co_await one(rank, buffer, round);
        GANTRY_CO_TRY(done);
    }
    seen.puts += puts(rank);
    co_return success();
}

TEST(ReadyToReceive, AnRtrThatComesTooLateCountsTowardsTheMapping) {
    Options options = two_gpus();
    options.change_machine = [](model::Machine& machine) {
        machine.gpu.calls.ipc_pair = 0;
        machine.gpu.calls.ipc_open_peer = 150 * kMicrosecond;
    };
    World world(options);
    Seen seen;
    const Ending ending = world.run([&seen](Rank& rank) { return late_then_waiting(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something was left over";
    EXPECT_GE(seen.puts, 30u);
}

// --- what must not be put -----------------------------------------------------------------------

// The receive that sent an RTR is for one tag; another message comes first.
Task<Status> another_tag_first(Rank& rank, Seen& seen) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Bytebuffer other(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    if (rank.number == 0) {
        buffer.fill(1);
        other.fill(2);
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        Result<p2p::Request*> first =
            rank.messenger.isend(rank.all, other.whole(), 1, 8, p2p::SendMode::standard);
        Status sent = co_await send_and_wait(rank, buffer.whole(), 1, 7);
        GANTRY_CO_TRY(sent);
        Received ended = co_await finish(rank.executor, rank, std::move(first));
        GANTRY_CO_TRY(ended.status);
    } else {
        buffer.clear();
        other.clear();
        Received got = co_await receive_and_wait(rank, buffer.whole(), 0, 7);
        GANTRY_CO_TRY(got.status);
        WORLD_CHECK(buffer.holds(1, kBytes));
        got = co_await receive_and_wait(rank, other.whole(), 0, 8);
        GANTRY_CO_TRY(got.status);
        WORLD_CHECK(other.holds(2, kBytes));
        WORLD_CHECK(buffer.holds(1, kBytes));
    }
    seen.puts += puts(rank);
    co_return success();
}

TEST(ReadyToReceive, AMessageWithAnotherTagGoesItsUsualWay) {
    World world(two_gpus());
    Seen seen;
    const Ending ending = world.run([&seen](Rank& rank) { return another_tag_first(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.puts, 0u) << "the RTR was for the next message, which was another";
    EXPECT_TRUE(world.settle());
}

// An older receive from any source may take the message: no RTR is sent.
Task<Status> an_older_receive(Rank& rank, Seen& seen) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Bytebuffer older(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    if (rank.number == 0) {
        for (const std::uint64_t key : {1, 2}) {
            buffer.fill(key);
            Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
            GANTRY_CO_TRY(slept);
            Status sent = co_await send_and_wait(rank, buffer.whole(), 1, 7);
            GANTRY_CO_TRY(sent);
        }
        seen.puts = puts(rank);
        co_return success();
    }
    buffer.clear();
    older.clear();
    Result<p2p::Request*> first =
        rank.messenger.ireceive(rank.all, older.whole(), MPI_ANY_SOURCE, MPI_ANY_TAG);
    Received got = co_await receive_and_wait(rank, buffer.whole(), 0, 7);
    GANTRY_CO_TRY(got.status);
    Received one = co_await finish(rank.executor, rank, std::move(first));
    GANTRY_CO_TRY(one.status);
    WORLD_CHECK(older.holds(1, kBytes));
    WORLD_CHECK(buffer.holds(2, kBytes));
    co_return success();
}

TEST(ReadyToReceive, AnOlderReceiveThatFitsTakesTheMessage) {
    World world(two_gpus());
    Seen seen;
    const Ending ending = world.run([&seen](Rank& rank) { return an_older_receive(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.puts, 0u);
    EXPECT_TRUE(world.settle());
}

Task<Status> too_large(Rank& rank) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    if (rank.number == 0) {
        Bytebuffer larger(rank, Place::device, 2 * kBytes, rank.number);
        larger.fill(9);
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        Status sent = co_await send_and_wait(rank, larger.whole(), 1, 7);
        co_return sent;
    }
    Bytebuffer guarded(rank, Place::device, 2 * kBytes, rank.number);
    guarded.clear();
    Received got = co_await receive_and_wait(rank, guarded.part(0, kBytes), 0, 7);
    WORLD_CHECK(got.status.error_class() == MPI_ERR_TRUNCATE);
    WORLD_CHECK(guarded.holds(9, kBytes));
    co_return success();
}

TEST(ReadyToReceive, AMessageThatIsTooLargeIsTruncatedAsEver) {
    World world(two_gpus());
    const Ending ending = world.run([](Rank& rank) { return too_large(rank); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
}

// A sender that goes on to compute: its message must not wait until it is back in MPI.
Task<Status> a_sender_that_computes(Rank& rank, Seen& seen, Nanoseconds& took) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    Status done = co_await send_and_compute(rank, buffer, Sends::at_leisure, took);
    GANTRY_CO_TRY(done);
    if (rank.number == 0) seen.puts = puts(rank);
    co_return success();
}

TEST(ReadyToReceive, ASenderThatComputesDoesNotHoldItsMessageUp) {
    World world(two_gpus());
    Seen seen;
    Nanoseconds took = 0;
    const Ending ending =
        world.run([&seen, &took](Rank& rank) { return a_sender_that_computes(rank, seen, took); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.puts, 0u);
    EXPECT_LT(took, kMillisecond);
    EXPECT_TRUE(world.settle());
}

// --- faults -------------------------------------------------------------------------------------

Task<Status> a_copy_fails(Rank& rank, Seen& seen) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    if (rank.number == 0) {
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        rank.device.faults.fail_copy = 1;
        seen.ended[0] = co_await send_and_wait(rank, buffer.whole(), 1, 7);
        seen.puts = puts(rank);
    } else {
        Received got = co_await receive_and_wait(rank, buffer.whole(), 0, 7);
        seen.ended[1] = got.status;
    }
    // The next one is fine.
    Status met = co_await meet(rank, 5);
    GANTRY_CO_TRY(met);
    Status next = co_await one(rank, buffer, 77);
    co_return next;
}

TEST(ReadyToReceive, APutThatFailsIsAnErrorOnBothSides) {
    World world(two_gpus());
    Seen seen;
    const Ending ending = world.run([&seen](Rank& rank) { return a_copy_fails(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.puts, 1u);
    EXPECT_FALSE(seen.ended[0].ok());
    EXPECT_FALSE(seen.ended[1].ok());
    EXPECT_TRUE(world.settle());
}

Task<Status> somebody_dies(Rank& rank, int victim, Seen& seen) {
    Bytebuffer buffer(rank, Place::device, 64 * kMiB, rank.number);
    Bytebuffer small(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, small);
    GANTRY_CO_TRY(ready);
    // A long message by the same way: half a millisecond, and somebody dies meanwhile.
    if (rank.number == 0) {
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        rank.device.faults.hang_copy = 1;
        rank.world.kill_at(rank.processor.now() + 100 * kMicrosecond, victim);
        seen.ended[0] = co_await send_and_wait(rank, small.whole(), 1, 7);
    } else {
        Received got = co_await receive_and_wait(rank, small.whole(), 0, 7);
        seen.ended[1] = got.status;
    }
    co_return success();
}

TEST(ReadyToReceive, TheDeathOfASenderEndsTheReceive) {
    World world(two_gpus());
    Seen seen;
    const Ending ending = world.run([&seen](Rank& rank) { return somebody_dies(rank, 0, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_FALSE(seen.ended[1].ok());
}

// The receiver frees its buffer: the sender closes its mapping, and the next buffer begins anew.
Task<Status> a_freed_buffer(Rank& rank, Seen& seen) {
    for (int buffers = 0; buffers < 3; ++buffers) {
        Status done = co_await learnt(rank, seen);
        GANTRY_CO_TRY(done);
        Status slept = co_await rank.sleep(rank.executor, 30 * kMillisecond);
        GANTRY_CO_TRY(slept);
    }
    co_return success();
}

TEST(ReadyToReceive, AFreedBufferIsForgotten) {
    World world(two_gpus());
    Seen seen;
    const Ending ending = world.run([&seen](Rank& rank) { return a_freed_buffer(rank, seen); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(seen.puts, 30u);
    EXPECT_TRUE(world.settle());
}

// --- everything at once -------------------------------------------------------------------------

// Both ranks reckon alike what message `i` is.
struct Mixed {
    std::uint64_t seed;
    std::uint64_t draw(int message, int what) const {
        std::uint64_t x =
            seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(message * 8 + what);
        x ^= x >> 31;
        x *= 0xbf58476d1ce4e5b9u;
        return x ^ (x >> 29);
    }
    Bytes bytes(int message) const {
        constexpr Bytes kSizes[] = {8, kBytes, kBytes, kBytes, 3 * kKiB};
        return kSizes[draw(message, 0) % 5];
    }
    bool from_host(int message) const { return draw(message, 1) % 8 == 0; }
    bool swapped(int message) const { return draw(message, 2) % 6 == 0; }  // with the next
    bool any_tag(int message) const { return draw(message, 3) % 5 == 0; }
    bool posted_ahead(int message) const { return draw(message, 4) % 7 == 0; }
    Nanoseconds pause(int message, int rank) const {
        return static_cast<Nanoseconds>(draw(message, 5 + rank) % 4) * 3 * kMicrosecond;
    }
};

constexpr int kMessages = 400;

Task<Status> send_mixed(Rank& rank, Mixed mixed) {
    Bytebuffer device(rank, Place::device, kBytes, rank.number);
    Bytebuffer host(rank, Place::host, kBytes);
    for (int i = 0; i < kMessages; ++i) {
        Bytebuffer& buffer = mixed.from_host(i) ? host : device;
        buffer.fill(static_cast<std::uint64_t>(i));
        Status slept = co_await rank.sleep(rank.executor, mixed.pause(i, 0));
        GANTRY_CO_TRY(slept);
        // A pair that is received the other way round must both be on their way.
        if (mixed.swapped(i) && i + 1 < kMessages) {
            Bytebuffer second(rank, Place::device, kBytes, rank.number);
            second.fill(static_cast<std::uint64_t>(i + 1));
            Result<p2p::Request*> first = rank.messenger.isend(
                rank.all, buffer.part(0, mixed.bytes(i)), 1, i, p2p::SendMode::standard);
            Status sent =
                co_await send_and_wait(rank, second.part(0, mixed.bytes(i + 1)), 1, i + 1);
            GANTRY_CO_TRY(sent);
            Received ended = co_await finish(rank.executor, rank, std::move(first));
            GANTRY_CO_TRY(ended.status);
            ++i;
            continue;
        }
        Status sent = co_await send_and_wait(rank, buffer.part(0, mixed.bytes(i)), 1, i);
        GANTRY_CO_TRY(sent);
    }
    co_return success();
}

Task<Status> receive_mixed(Rank& rank, Mixed mixed) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Bytebuffer second(rank, Place::device, kBytes, rank.number);
    for (int i = 0; i < kMessages; ++i) {
        Status slept = co_await rank.sleep(rank.executor, mixed.pause(i, 1));
        GANTRY_CO_TRY(slept);
        buffer.clear();
        second.clear();
        const bool pair = mixed.swapped(i) && i + 1 < kMessages;
        Received got;
        if (pair && mixed.posted_ahead(i)) {
            Result<p2p::Request*> ahead =
                rank.messenger.ireceive(rank.all, buffer.whole(), MPI_ANY_SOURCE, i);
            got = co_await receive_and_wait(rank, second.whole(), 0, MPI_ANY_TAG);
            GANTRY_CO_TRY(got.status);
            WORLD_CHECK(got.outcome.tag == i + 1);
            got = co_await finish(rank.executor, rank, std::move(ahead));
        } else {
            if (pair) {
                got = co_await receive_and_wait(rank, second.whole(), 0, i + 1);
                GANTRY_CO_TRY(got.status);
            }
            const int tag = mixed.any_tag(i) ? MPI_ANY_TAG : i;
            got = co_await receive_and_wait(rank, buffer.whole(), 0, tag);
        }
        GANTRY_CO_TRY(got.status);
        WORLD_CHECK(got.outcome.tag == i && got.outcome.bytes == mixed.bytes(i));
        WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(i), mixed.bytes(i)));
        if (!pair) continue;
        ++i;
        WORLD_CHECK(second.holds(static_cast<std::uint64_t>(i), mixed.bytes(i)));
    }
    co_return success();
}

TEST(ReadyToReceive, MixedWithEverythingElseAllBytesAreRight) {
    std::uint64_t puts_of_all = 0;
    for (std::uint64_t seed = 1; seed <= repetitions(24); ++seed) {
        Options options = two_gpus(seed);
        options.explain = seed % 4 < 2;
        options.jitter = static_cast<Nanoseconds>(seed % 3) * 4 * kMicrosecond;
        if (seed % 2 == 0) options.shared_memory_order = transport::fake::Order::shuffled;
        World world(options);
        const Mixed mixed{seed};
        const Ending ending = world.run([mixed](Rank& rank) {
            return rank.number == 0 ? send_mixed(rank, mixed) : receive_mixed(rank, mixed);
        });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "seed " << seed << ": something was left over";
        puts_of_all += puts(world.rank(0));
    }
    EXPECT_GT(puts_of_all, 0u) << "no RTR was sent: the test says nothing";
}

}  // namespace
}  // namespace gantry::world

// SPDX-License-Identifier: BSD-3-Clause
//
// Ready-to-receive in exchanges (MPI_Sendrecv): both ranks name their buffers, and both put. What
// holds for a lone receive is in ready_to_receive_test.cpp.
#include "sanitized.hpp"
#include "world/harness/ready_to_receive.hpp"

namespace gantry::world {
namespace {

constexpr int kTag = 7;

struct Ended {
    Status sent;
    Received received = {};
};

// As MPI_Sendrecv does it.
Task<Ended> exchange(Rank& rank, p2p::Buffer out, int to, p2p::Buffer in, int from) {
    const p2p::Messenger::Half outgoing{out, to, kTag}, incoming{in, from, kTag};
    auto both = rank.messenger.exchange(rank.all, &outgoing, &incoming, true);
    Ended ended;
    if (!both.ok()) {
        ended.sent = both.status();
        co_return ended;
    }
    Received sent = co_await finish(rank.executor, rank, both->sending);
    ended.sent = sent.status;
    ended.received = co_await finish(rank.executor, rank, both->receiving);
    co_return ended;
}

// What a rank sends in a round.
std::uint64_t key(int rank, int round) {
    return static_cast<std::uint64_t>(round) * 100 + static_cast<std::uint64_t>(rank);
}

// Every rank sends to the next one of a ring; `pause`: how far they may be apart.
Task<Status> shift(Rank& rank, int rounds, std::uint64_t seed, Nanoseconds pause) {
    Bytebuffer out(rank, Place::device, kBytes, rank.number);
    Bytebuffer in(rank, Place::device, kBytes, rank.number);
    const int size = rank.all.size();
    const int to = (rank.number + 1) % size, from = (rank.number + size - 1) % size;
    for (int round = 0; round < rounds; ++round) {
        // Sizes change now and then, and with them what the last plan was for.
        const Bytes bytes = round % 16 == 15 ? kBytes / 2 : kBytes;
        out.fill(key(rank.number, round));
        in.clear();
        seed = seed * 6364136223846793005u + 1442695040888963407u + key(rank.number, 0);
        if (pause > 0) {
            const auto apart = static_cast<Nanoseconds>((seed >> 33) % 8) * pause / 8;
            Status slept = co_await rank.sleep(rank.executor, apart);
            GANTRY_CO_TRY(slept);
        }
        Ended ended = co_await exchange(rank, out.part(0, bytes), to, in.whole(), from);
        GANTRY_CO_TRY(ended.sent);
        GANTRY_CO_TRY(ended.received.status);
        WORLD_CHECK(ended.received.outcome.bytes == bytes);
        WORLD_CHECK(in.holds(key(from, round), bytes));
    }
    co_return success();
}

// `later`: enters each exchange when the other waits already. (Time stands still for who looks for an
// announcement in this world, so only one of two finds it.)
struct Counted {
    std::uint64_t puts, gets;
};
Task<Status> learn_and_count(Rank& rank, int later, Counted counted[2]) {
    Bytebuffer out(rank, Place::device, kBytes, rank.number);
    Bytebuffer in(rank, Place::device, kBytes, rank.number);
    const int peer = 1 - rank.number;
    for (int round = 0; round < kLearn + 10; ++round) {
        if (round == kLearn) rank.device.reset_counts();
        out.fill(key(rank.number, round));
        in.clear();
        if (rank.number == later) {
            Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
            GANTRY_CO_TRY(slept);
        }
        Ended ended = co_await exchange(rank, out.whole(), peer, in.whole(), peer);
        GANTRY_CO_TRY(ended.sent);
        GANTRY_CO_TRY(ended.received.status);
        WORLD_CHECK(in.holds(key(peer, round), kBytes));
        Status met = co_await meet(rank, 1000 + round);
        GANTRY_CO_TRY(met);
    }
    counted[rank.number] = {puts(rank), gets(rank)};
    co_return success();
}

TEST(ReadyToReceiveExchange, WhoFindsTheRtrPuts) {
    for (const std::uint64_t seed : {3, 4}) {
        for (const int later : {0, 1}) {
            World world(two_gpus(seed));
            Counted counted[2] = {};
            const Ending ending =
                world.run([&](Rank& rank) { return learn_and_count(rank, later, counted); });
            EXPECT_TRUE(ending.good()) << ending;
            EXPECT_TRUE(world.settle()) << "something was left over";
            EXPECT_EQ(counted[later].puts, 10u) << "rank " << later << ", seed " << seed;
            EXPECT_EQ(counted[later].gets, 10u) << "what was sent before its RTR";
            EXPECT_EQ(counted[1 - later].puts + counted[1 - later].gets, 0u);
        }
    }
}

TEST(ReadyToReceiveExchange, AllBytesAreRightHoweverFarTheRanksAreApart) {
    std::uint64_t puts_of_all = 0;
    for (std::uint64_t seed = 1; seed <= repetitions(24); ++seed) {
        Options options = two_gpus(seed);
        options.ranks = options.ranks_per_node = seed % 3 == 0 ? 4 : 2;
        options.jitter = static_cast<Nanoseconds>(seed % 3) * 2 * kMicrosecond;
        if (seed % 2 == 0) options.shared_memory_order = transport::fake::Order::shuffled;
        World world(options);
        const auto pause = static_cast<Nanoseconds>(seed % 5) * 4 * kMicrosecond;
        const Ending ending =
            world.run([=](Rank& rank) { return shift(rank, 2 * kLearn, seed, pause); });
        ASSERT_TRUE(ending.good()) << ending << " seed " << seed;
        ASSERT_TRUE(world.settle()) << "seed " << seed << ": something was left over";
        puts_of_all += puts(world.rank(0));
    }
    EXPECT_GT(puts_of_all, 0u) << "no RTR was sent: the test says nothing";
}

// Its sender may be writing already.
Task<Status> cancelled_in_vain(Rank& rank) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    if (rank.number == 0) {
        buffer.fill(5);
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        Status sent = co_await send_and_wait(rank, buffer.whole(), 1, kTag);
        co_return sent;
    }
    buffer.clear();
    Result<p2p::Request*> started =
        rank.messenger.receive_to_wait(rank.all, buffer.whole(), 0, kTag);
    WORLD_CHECK(started.ok() && !rank.messenger.cancel(**started));
    Received got = co_await finish(rank.executor, rank, std::move(started));
    GANTRY_CO_TRY(got.status);
    WORLD_CHECK(!got.outcome.cancelled && buffer.holds(5, kBytes));
    co_return success();
}

TEST(ReadyToReceiveExchange, AReceiveThatSentAnRtrIsNotCancelled) {
    World world(two_gpus());
    const Ending ending = world.run([](Rank& rank) { return cancelled_in_vain(rank); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(puts(world.rank(0)), 1u);
    EXPECT_TRUE(world.settle());
}

// Rank 2 is dead: what rank 0 would send there is refused, and nothing of its receive is left.
Task<Status> towards_the_dead(Rank& rank, Ended& ended) {
    Bytebuffer out(rank, Place::device, kBytes, rank.number);
    Bytebuffer in(rank, Place::device, kBytes, rank.number);
    if (rank.number == 0) rank.world.kill_at(rank.processor.now() + kMicrosecond, 2);
    if (rank.number == 2) co_return success();
    Status slept = co_await rank.sleep(rank.executor, 100 * kMillisecond);
    GANTRY_CO_TRY(slept);
    if (rank.number == 0) {
        in.clear();
        ended = co_await exchange(rank, out.whole(), 2, in.whole(), 1);
        Received got = co_await receive(rank, in.whole(), 1, kTag);
        GANTRY_CO_TRY(got.status);
        WORLD_CHECK(in.holds(6, kBytes));
    } else if (rank.number == 1) {
        out.fill(6);
        Status sent = co_await send(rank, out.whole(), 0, kTag);
        GANTRY_CO_TRY(sent);
    }
    co_return success();
}

TEST(ReadyToReceiveExchange, ThatCannotSendReceivesNothing) {
    Options options = two_gpus();
    options.ranks = options.ranks_per_node = 3;
    World world(options);
    Ended ended;
    world.run([&ended](Rank& rank) { return towards_the_dead(rank, ended); });
    EXPECT_FALSE(ended.sent.ok());
    EXPECT_EQ(world.rank(0).messenger.pending(), false);
}

// While it puts.
Task<Status> partner_dies(Rank& rank, Ended& ended) {
    Bytebuffer out(rank, Place::device, kBytes, rank.number);
    Bytebuffer in(rank, Place::device, kBytes, rank.number);
    const int peer = 1 - rank.number;
    for (int round = 0; round <= kLearn; ++round) {
        if (rank.number == 1) {
            Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
            GANTRY_CO_TRY(slept);
        }
        if (rank.number == 1 && round == kLearn) {
            rank.device.faults.hang_copy = 2;  // behind its get
            rank.world.kill_at(rank.processor.now() + 100 * kMicrosecond, 1);
        }
        Ended last = co_await exchange(rank, out.whole(), peer, in.whole(), peer);
        if (rank.number == 0) ended = last;
    }
    co_return success();
}

TEST(ReadyToReceiveExchange, TheDeathOfThePartnerEndsTheReceive) {
    World world(two_gpus());
    Ended ended;
    const Ending ending = world.run([&ended](Rank& rank) { return partner_dies(rank, ended); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_FALSE(ended.received.status.ok());
}

}  // namespace
}  // namespace gantry::world

// SPDX-License-Identifier: BSD-3-Clause
//
// A sender that was told to put and does not come, because its program computes: the receiver
// copies itself, once it has waited long enough. Two GPUs of an H200 that write to each other
// faster than they read, so that a put is the better plan.
#include "world/harness/programs.hpp"

#include "sanitized.hpp"
#include "transfer/claim_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

namespace gantry::world {
namespace {

using model::Operation;

constexpr Bytes kBytes = 4 * kMiB;
constexpr int kWarmUp = 120;  // the put's mapping is open then

struct Late {
    std::vector<Nanoseconds> computes;  // the sender, behind each Isend
    std::vector<Nanoseconds> took{};    // each receive, from its Isend on
    Nanoseconds sent = 0;
    Bytes bytes = kBytes;
    bool refuse_to_open = false;  // the receiver cannot map the source
    bool refuse_to_put = false;   // nor the sender the sink
    std::uint64_t puts = 0, gets = 0, staged = 0;
};

Task<Status> one(Rank& rank, Bytebuffer& buffer, std::uint64_t key, Nanoseconds computes,
                 Late& test) {
    if (rank.number == 0) {
        buffer.fill(key);
        Received token = co_await receive(rank, kNothing, 1, 1);  // the receive is posted
        GANTRY_CO_TRY(token.status);
        test.sent = rank.processor.now();
        Result<p2p::Request*> sending =
            rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard);
        if (computes > 0) rank.work(computes);
        Received sent = co_await finish(rank.executor, rank, std::move(sending));
        GANTRY_CO_TRY(sent.status);
        buffer.clear();  // a copy that came now would be wrong
    } else {
        buffer.clear();
        Result<p2p::Request*> posted = rank.messenger.ireceive(rank.all, buffer.whole(), 0, 0);
        Status token = co_await send(rank, kNothing, 0, 1);
        GANTRY_CO_TRY(token);
        Received received = co_await finish(rank.executor, rank, std::move(posted));
        GANTRY_CO_TRY(received.status);
        test.took.push_back(rank.processor.now() - test.sent);
        WORLD_CHECK(buffer.holds(key, test.bytes));
    }
    co_return success();
}

Task<Status> late_sender(Rank& rank, Late& test) {
    Bytebuffer buffer(rank, Place::device, test.bytes, rank.number);
    rank.device.faults.refuse_ipc_open =
        rank.number == 1 ? test.refuse_to_open : test.refuse_to_put;
    for (int i = 0; i < kWarmUp; ++i) {
        Status status = co_await one(rank, buffer, static_cast<std::uint64_t>(i), 0, test);
        GANTRY_CO_TRY(status);
    }
    Status met = co_await meet(rank, 5);
    GANTRY_CO_TRY(met);
    rank.device.reset_counts();
    if (rank.number == 1) test.took.clear();
    for (std::size_t i = 0; i < test.computes.size(); ++i) {
        Status status = co_await one(rank, buffer, 1000 + i, test.computes[i], test);
        GANTRY_CO_TRY(status);
    }
    met = co_await meet(rank, 6);
    co_return met;
}

void run(Late& test, std::uint64_t seed, Nanoseconds claim_wait = 20 * kMicrosecond) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .seed = seed,
                 .jitter = 2 * kMicrosecond,
                 .mechanisms = "all",
                 .change_machine =
                     [](model::Machine& machine) {
                         machine.gpu.peer_get = machine.gpu.peer;
                         machine.gpu.peer_get.rate = model::Rate(machine.gpu.peer.rate.peak() / 2);
                     },
                 .change_config =
                     [claim_wait](config::Config& config) { config.claim_wait = claim_wait; }});
    const Ending ending = world.run([&test](Rank& rank) { return late_sender(rank, test); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle()) << "something was left over";
    const device::fake::Counts& sender = world.rank(0).device.counts();
    const device::fake::Counts& receiver = world.rank(1).device.counts();
    test.puts = sender.copies[static_cast<int>(Operation::peer)];
    test.gets = receiver.copies[static_cast<int>(Operation::peer_get)];
    test.staged = sender.copies[static_cast<int>(Operation::d2h)];
}

// Exports of the sender in the last of many messages: none by a cached RTS, which has
// no claim word.
Task<Status> many(Rank& rank) {
    constexpr Bytes kSmall = 8 * kKiB;
    Bytebuffer buffer(rank, Place::device, kSmall, rank.number);
    for (int i = 0; i < 600; ++i) {
        rank.device.reset_counts();
        if (rank.number == 0) {
            Status sent = co_await send(rank, buffer.whole(), 1, 0);
            GANTRY_CO_TRY(sent);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            GANTRY_CO_TRY(received.status);
        }
    }
    co_return success();
}

std::uint64_t exports_with_gets_at(double part_of_a_put) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .seed = 2,
                 .mechanisms = "all",
                 .change_machine = [part_of_a_put](model::Machine& machine) {
                     machine.gpu.peer_get = machine.gpu.peer;
                     machine.gpu.peer_get.rate =
                         model::Rate(part_of_a_put * machine.gpu.peer.rate.peak());
                 }});
    const Ending ending = world.run([](Rank& rank) { return many(rank); });
    EXPECT_TRUE(ending.good()) << ending;
    return world.rank(0).device.counts().exports;
}

// As `gantry tune` measures it on an H200.
TEST(Claims, MessagesNeedNoneWhereAGetIsHardlySlowerThanAPut) {
    EXPECT_EQ(exports_with_gets_at(0.95), 0u);
    EXPECT_EQ(exports_with_gets_at(0.5), 1u);
}

TEST(Claims, ASenderThatComesInTimeCopiesItself) {
    Late test{.computes = std::vector<Nanoseconds>(10, 0)};
    run(test, 1);
    EXPECT_EQ(test.puts, 10u);
    EXPECT_EQ(test.gets, 0u);
}

TEST(Claims, TheReceiverCopiesWhenTheSenderComputes) {
    Late test{.computes = std::vector<Nanoseconds>(10, 30 * kMillisecond)};
    run(test, 2);
    EXPECT_EQ(test.puts, 0u);
    EXPECT_EQ(test.gets, 10u);
    ASSERT_EQ(test.took.size(), 10u);
    // The first one also opens the sender's memory, when it has waited as long as that takes.
    EXPECT_LT(test.took[0], 15 * kMillisecond);
    for (std::size_t i = 1; i < test.took.size(); ++i)
        EXPECT_LT(test.took[i], 300 * kMicrosecond);
    Late waits{.computes = test.computes};
    run(waits, 2, 40 * kMillisecond);
    EXPECT_EQ(waits.puts, 10u) << "nobody claims before GANTRY_CLAIM_WAIT";
    for (const Nanoseconds took : waits.took)
        EXPECT_GT(took, 29 * kMillisecond);
}

TEST(Claims, ExactlyOneSideCopiesWheneverTheSenderComes) {
    std::uint64_t puts = 0, gets = 0;
    constexpr std::uint64_t kSeeds = repetitions(6);
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        model::Timeline random(seed);
        Late test{.computes = {30 * kMillisecond}};  // opens the mapping of a get
        for (int i = 0; i < 60; ++i)
            test.computes.push_back(static_cast<Nanoseconds>(random.random(120 * kMicrosecond)));
        run(test, seed);
        EXPECT_EQ(test.puts + test.gets, test.computes.size()) << "seed " << seed;
        EXPECT_EQ(test.staged, 0u);
        puts += test.puts;
        gets += test.gets;
    }
    EXPECT_GT(puts, 10 * kSeeds);
    EXPECT_GT(gets, 10 * kSeeds);
}

TEST(Claims, AReceiverThatClaimedAndCannotCopyIsSentThePieces) {
    // Of the larger one some pieces were copied ahead, and wait for the rest while the put is
    // expected.
    for (const Bytes bytes : {kBytes, kBytes + kMiB + 17}) {
        Late test{.computes = std::vector<Nanoseconds>(5, 30 * kMillisecond),
                  .bytes = bytes,
                  .refuse_to_open = true};
        run(test, 3);
        EXPECT_EQ(test.puts + test.gets, 0u);
        EXPECT_GT(test.staged, 0u);
    }
}

// In time, but it cannot map the sink either: it goes on behind what it had copied ahead.
TEST(Claims, ASenderThatCannotPutSendsThePieces) {
    for (const Bytes bytes : {kBytes, kBytes + kMiB + 17}) {
        Late test{.computes = std::vector<Nanoseconds>(5, 0),
                  .bytes = bytes,
                  .refuse_to_open = true,
                  .refuse_to_put = true};
        run(test, 5, kSecond);
        EXPECT_EQ(test.puts + test.gets, 0u);
        EXPECT_GT(test.staged, 0u);
    }
}

// --- who copies dies ----------------------------------------------------------------------------

// One GPU, used last by rank 1: it is told to put, and claims; or it is late, and rank 0 does. The
// copy lasts long enough for somebody to die in the middle of it.
struct Dies {
    transfer::Claimant claimant;
    int victim;
    Nanoseconds after = 0;   // of the send
    bool in_a_copy = false;  // result: the claimant's
    int taken = 0;           // result: words that the claimant had by then
    Status ended[2] = {};
    bool right = false;
    int copies_of() const { return claimant == transfer::Claimant::sender ? 1 : 0; }
};

using Words = std::array<std::uint32_t, transfer::kClaimWords>;

Words words_of_rank_1(World& world) {
    Words words;
    const std::uint32_t* all = world.shared_memory().end(1).shared_segment(1)->claim_words();
    std::copy_n(all, words.size(), words.begin());
    return words;
}

Task<Status> move(Rank& rank, Bytebuffer& buffer, int from, std::uint64_t key) {
    if (rank.number == from) {
        buffer.fill(key);
        Status sent = co_await send(rank, buffer.whole(), 1 - from, 0);
        co_return sent;
    }
    buffer.clear();
    Received received = co_await receive(rank, buffer.whole(), from, 0);
    GANTRY_CO_TRY(received.status);
    WORLD_CHECK(buffer.holds(key, buffer.bytes()));
    co_return success();
}

Task<Status> dies_in_the_middle(Rank& rank, Dies& test, Words& before,
                                const std::function<void()>& die) {
    Bytebuffer buffer(rank, Place::device, 256 * kKiB);
    for (std::uint64_t i = 0; i < 8; ++i) {  // rank 1 gets, then puts
        int from = 0;
        if (i >= 4) from = 1;
        Status moved = co_await move(rank, buffer, from, i);
        GANTRY_CO_TRY(moved);
        Status met = co_await meet(rank, 5);
        GANTRY_CO_TRY(met);
    }
    rank.device.reset_counts();
    rank.device.faults.hang_copy = 1;
    rank.device.faults.hang_for = kMillisecond;
    if (rank.number == 1) {
        buffer.fill(77);
        before = words_of_rank_1(rank.world);
        rank.world.timeline().at(rank.processor.now() + test.after, die);
        Result<p2p::Request*> sending =
            rank.messenger.isend(rank.all, buffer.whole(), 0, 0, p2p::SendMode::standard);
        if (test.claimant == transfer::Claimant::receiver) rank.work(5 * kMillisecond);
        Received sent = co_await finish(rank.executor, rank, std::move(sending));
        test.ended[1] = sent.status;
    } else {
        buffer.clear();
        Received received = co_await receive(rank, buffer.whole(), 1, 0);
        test.ended[0] = received.status;
        test.right = buffer.holds(77, buffer.bytes());
    }
    Bytebuffer small(rank, Place::host, 8);
    Status slept = co_await rank.sleep(rank.executor, 20 * kMillisecond);
    GANTRY_CO_TRY(slept);
    Status sent = co_await send(rank, small.whole(), 1 - rank.number, 2);
    WORLD_CHECK(!sent.ok());
    co_return success();
}

void run(Dies& test, std::uint64_t seed) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .seed = seed,
                 .jitter = 2 * kMicrosecond,
                 .mechanisms = "all",
                 .change_config = [](config::Config& config) {
                     config.ipc_threshold = 1;
                     config.claim_wait = 20 * kMicrosecond;
                     config.device_pool = config.host_pool = kMiB;
                 }});
    test.after = static_cast<Nanoseconds>(world.timeline().random(1500 * kMicrosecond));
    Words before{};
    const std::function<void()> die = [&world, &test, &before] {
        const Words now = words_of_rank_1(world);
        for (std::size_t i = 0; i < now.size(); ++i)
            if (now[i] != before[i] && (now[i] & 3) == static_cast<std::uint32_t>(test.claimant))
                ++test.taken;
        device::fake::FakeDevice& copies = world.rank(test.copies_of()).device;
        test.in_a_copy = copies.in_flight() > 0;
        EXPECT_EQ(copies.counts().all_copies(),
                  copies.counts().copies[static_cast<int>(Operation::d2d)]);
        EXPECT_EQ(world.rank(1 - test.copies_of()).device.counts().all_copies(), 0u);
        world.kill(test.victim);
    };
    const Ending ending = world.run(
        [&test, &before, &die](Rank& rank) { return dies_in_the_middle(rank, test, before, die); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle()) << "seed " << seed << ": something was left over";
}

TEST(Claims, TheDeathOfWhoeverClaimedEndsTheMessageAtTheOther) {
    for (const transfer::Claimant claimant :
         {transfer::Claimant::sender, transfer::Claimant::receiver}) {
        for (const int victim : {0, 1}) {
            int in_a_copy = 0;
            for (std::uint64_t seed = 1; seed <= 16; ++seed) {
                Dies test{.claimant = claimant, .victim = victim};
                run(test, seed);
                const Status& survivor = test.ended[1 - victim];
                if (test.in_a_copy) {
                    ++in_a_copy;
                    EXPECT_EQ(test.taken, 1) << "seed " << seed;
                    // A survivor that copies itself may have all the bytes; one that was copied
                    // for cannot.
                    if (victim == test.copies_of()) {
                        EXPECT_FALSE(survivor.ok()) << "seed " << seed;
                    }
                }
                if (!survivor.ok()) {
                    EXPECT_EQ(survivor.error_class(), MPI_ERR_PROC_ABORTED) << survivor.text();
                } else if (victim == 1) {
                    EXPECT_TRUE(test.right) << "seed " << seed;
                }
            }
            EXPECT_GE(in_a_copy, 5) << "rank " << victim << " hardly died in a copy";
        }
    }
}

TEST(Claims, AnOlderMessageLosesItsWordAndItsClaim) {
    std::uint32_t word = 0;
    transfer::name_claim(word, 5);
    EXPECT_TRUE(transfer::take_claim(word, 5, transfer::Claimant::sender));
    EXPECT_TRUE(transfer::take_claim(word, 5, transfer::Claimant::sender))
        << "it still is the sender's";
    EXPECT_FALSE(transfer::take_claim(word, 5, transfer::Claimant::receiver));
    transfer::name_claim(word, 5 + transfer::kClaimWords);
    EXPECT_FALSE(transfer::take_claim(word, 5, transfer::Claimant::receiver))
        << "that message is over";
    EXPECT_TRUE(
        transfer::take_claim(word, 5 + transfer::kClaimWords, transfer::Claimant::receiver));
}

TEST(Claims, AWordIsOneMessagesAtATime) {
    transfer::ClaimWords words;
    EXPECT_TRUE(words.reserve(7));
    EXPECT_FALSE(words.reserve(7 + transfer::kClaimWords));
    words.release(7);
    EXPECT_TRUE(words.reserve(7 + transfer::kClaimWords));
}

TEST(Claims, OfTwoThreadsOneWins) {
    std::uint32_t word = 0;
    for (std::uint64_t id = 1; id <= 2000; ++id) {
        transfer::name_claim(word, id);
        std::atomic<int> winners{0}, ready{0};
        const auto contend = [&](transfer::Claimant who) {
            ++ready;
            while (ready.load() < 2) {
            }
            if (transfer::take_claim(word, id, who)) ++winners;
        };
        std::thread other(contend, transfer::Claimant::receiver);
        contend(transfer::Claimant::sender);
        other.join();
        ASSERT_EQ(winners.load(), 1) << id;
    }
}

}  // namespace
}  // namespace gantry::world

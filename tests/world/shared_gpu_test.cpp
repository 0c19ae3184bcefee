// SPDX-License-Identifier: BSD-3-Clause
//
// Two ranks on one GPU of an H200: small and large messages in both directions settle on copies by
// the rank that used the GPU last, and go back to host memory when the other rank computes.
#include "world/harness/programs.hpp"
#include "transfer/mover.hpp"

namespace gantry::world {
namespace {

using model::Operation;

struct Exchange {
    Bytes bytes;
    int rounds;
    int measured;              // of them, at the end
    Nanoseconds busy[2] = {};  // kernels that each rank queues before each round
    int used_by = -1;          // the rank whose program used the compute queue before
    bool ipc = true;
    Place from = Place::device;  // what is sent; it is received in device memory
    Nanoseconds latency = 0;     // result: half a round trip
    // Result: turns of the compute queue until it is measured, of both ranks.
    std::uint64_t turns_before = 0;
};

Task<Status> ping_pong(Rank& rank, Exchange& test) {
    Bytebuffer out(rank, test.from, test.bytes), in(rank, Place::device, test.bytes);
    const int other = 1 - rank.number;
    Nanoseconds begin = 0;
    if (rank.number == test.used_by) rank.device.compute(0, kMicrosecond);
    for (int round = 0; round < test.rounds; ++round) {
        if (round == test.rounds - test.measured) {
            begin = rank.processor.now();
            test.turns_before += rank.device.counts().turns;
            rank.device.reset_counts();
        }
        out.fill(static_cast<std::uint64_t>(2 * round + rank.number));
        in.clear();
        Result<p2p::Request*> posted = rank.messenger.ireceive(rank.all, in.whole(), other, 0);
        if (test.busy[rank.number] > 0) rank.device.compute(0, test.busy[rank.number]);
        if (rank.number == 0) {
            Status sent = co_await send(rank, out.whole(), other, 0);
            GANTRY_CO_TRY(sent);
        }
        Received received = co_await finish(rank.executor, rank, std::move(posted));
        GANTRY_CO_TRY(received.status);
        WORLD_CHECK(in.holds(static_cast<std::uint64_t>(2 * round + other), test.bytes));
        if (rank.number == 1) {
            Status sent = co_await send(rank, out.whole(), other, 0);
            GANTRY_CO_TRY(sent);
        }
    }
    if (rank.number == 0) test.latency = (rank.processor.now() - begin) / (2 * test.measured);
    co_return success();
}

struct Copies {
    std::uint64_t inside[2] = {}, staged = 0, turns = 0;
};

Copies run(Exchange& test) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .seed = 3,
                 .change_config = [&test](config::Config& config) { config.ipc = test.ipc; }});
    const Ending ending = world.run([&test](Rank& rank) { return ping_pong(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    Copies copies;
    for (int rank = 0; rank < 2; ++rank) {
        const device::fake::Counts& counts = world.rank(rank).device.counts();
        copies.inside[rank] = counts.copies[static_cast<int>(Operation::d2d)];
        copies.staged += counts.copies[static_cast<int>(Operation::d2h)];
        copies.turns += counts.turns;
    }
    return copies;
}

TEST(SharedGpu, SettlesOnOneRankThatCopiesInBothDirections) {
    for (const Bytes bytes : {Bytes{8}, 64 * kKiB, 4 * kMiB}) {
        Exchange test{.bytes = bytes, .rounds = 120, .measured = 20, .used_by = 0};
        const Copies copies = run(test);
        EXPECT_EQ(copies.staged, 0u) << bytes;
        EXPECT_EQ(copies.inside[0] + copies.inside[1], 40u) << bytes;
        EXPECT_TRUE(copies.inside[0] == 0 || copies.inside[1] == 0)
            << bytes << ": each change of the rank costs a turn of the compute queue";
        // Rank 1 takes the queue from rank 0's program, and it stays there.
        EXPECT_EQ(test.turns_before, 1u) << bytes;
        EXPECT_EQ(copies.turns, 0u) << bytes;
        EXPECT_LE(test.latency, (bytes < kMiB ? 15 : 16) * kMicrosecond) << bytes;
    }
}

TEST(SharedGpu, IsCopiedInByTheRankThatComputesOrStaged) {
    for (const Bytes bytes : {64 * kKiB, 4 * kMiB}) {
        Exchange test{bytes, 300, 20, {0, 200 * kMicrosecond}};
        const Copies copies = run(test);
        EXPECT_EQ(copies.inside[0], 0u) << bytes << ": its copies would wait for the kernels";
        EXPECT_EQ(test.turns_before + copies.turns, 0u) << bytes << ": the queue was its already";
        EXPECT_LE(test.latency, (bytes < kMiB ? 30 : 140) * kMicrosecond) << bytes;
    }
}

TEST(SharedGpu, IsStagedWhileBothRanksCompute) {
    for (const Bytes bytes : {64 * kKiB, 4 * kMiB}) {
        Exchange test{bytes, 300, 20, {200 * kMicrosecond, 200 * kMicrosecond}};
        const Copies copies = run(test);
        EXPECT_EQ(copies.inside[0] + copies.inside[1], 0u) << bytes;
        EXPECT_GT(test.turns_before, 0u) << bytes << ": nobody tried";
        EXPECT_EQ(copies.turns, 0u) << bytes;
        EXPECT_LE(test.latency, (bytes < kMiB ? 30 : 140) * kMicrosecond) << bytes;
    }
}

TEST(SharedGpu, SmallMessagesFromTheHostTakeNoTurnsWhoeverComputes) {
    for (const Bytes bytes : {Bytes{8}, Bytes{1001}, 16 * kKiB}) {
        Exchange test{.bytes = bytes,
                      .rounds = 40,
                      .measured = 20,
                      .busy = {20 * kMicrosecond, 20 * kMicrosecond},
                      .from = Place::host};
        const Copies copies = run(test);
        EXPECT_EQ(copies.staged + copies.inside[0] + copies.inside[1], 0u) << bytes;
        EXPECT_EQ(copies.turns, 0u) << bytes;
    }
}

struct Triangle {
    Bytes bytes;
    bool ipc = true;
    Nanoseconds took = 0;  // the last rounds, on rank 0
    std::uint64_t inside = 0, turns = 0;
};

// Three ranks of one GPU, each to its right: a request says when its sender used the GPU last, and
// nobody hears of the third.
Task<Status> around(Rank& rank, Triangle& test) {
    constexpr int kRounds = 300, kMeasured = 100;
    Bytebuffer out(rank, Place::device, test.bytes), in(rank, Place::device, test.bytes);
    const int right = (rank.number + 1) % 3, left = (rank.number + 2) % 3;
    Nanoseconds begin = 0;
    for (int round = 0; round < kRounds; ++round) {
        if (round == kRounds - kMeasured) {
            begin = rank.processor.now();
            rank.device.reset_counts();
        }
        out.fill(static_cast<std::uint64_t>(3 * round + rank.number));
        in.clear();
        Result<p2p::Request*> posted = rank.messenger.ireceive(rank.all, in.whole(), left, 0);
        Status sent = co_await send(rank, out.whole(), right, 0);
        GANTRY_CO_TRY(sent);
        Received received = co_await finish(rank.executor, rank, std::move(posted));
        GANTRY_CO_TRY(received.status);
        WORLD_CHECK(in.holds(static_cast<std::uint64_t>(3 * round + left), test.bytes));
    }
    if (rank.number == 0) test.took = rank.processor.now() - begin;
    test.inside += rank.device.counts().copies[static_cast<int>(Operation::d2d)];
    test.turns += rank.device.counts().turns;
    co_return success();
}

void run(Triangle& test) {
    World world({.machine = "h200",
                 .ranks = 3,
                 .ranks_per_node = 3,
                 .seed = 3,
                 .change_config = [&test](config::Config& config) { config.ipc = test.ipc; }});
    const Ending ending = world.run([&test](Rank& rank) { return around(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
}

// A turn for each of 300 messages would make it ten times as long.
TEST(SharedGpu, ThreeRanksPayFewTurnsThatNobodyForesaw) {
    for (const Bytes bytes : {Bytes{8}, 64 * kKiB, 4 * kMiB}) {
        Triangle test{.bytes = bytes}, staged{.bytes = bytes, .ipc = false};
        run(test);
        run(staged);
        EXPECT_EQ(staged.turns, 0u) << bytes;
        EXPECT_GT(test.inside, 0u) << bytes << ": nobody tried";
        EXPECT_LE(test.turns, 5u) << bytes;
        const double most = bytes < kMiB ? 1.7 : 0.5;
        EXPECT_LE(static_cast<double>(test.took), most * static_cast<double>(staged.took)) << bytes;
    }
}

// As reductions do, which send no device memory: both ranks copy in at once.
Task<Status> copies_in(Rank& rank) {
    Bytebuffer from(rank, Place::host, 1001), to(rank, Place::device, 1001);
    for (int round = 0; round < 20; ++round) {
        from.fill(static_cast<std::uint64_t>(round));
        Status copied = co_await transfer::copy(rank.executor, rank.transfer, to.address(),
                                                from.address(), from.bytes());
        GANTRY_CO_TRY(copied);
        WORLD_CHECK(to.holds(static_cast<std::uint64_t>(round), to.bytes()));
        if (rank.number == 0) {
            Status sent = co_await send(rank, kNothing, 1, 0);
            GANTRY_CO_TRY(sent);
        } else {
            Received received = co_await receive(rank, kNothing, 0, 0);
            GANTRY_CO_TRY(received.status);
        }
        if (round == 0) rank.device.reset_counts();  // nobody knew of the other
    }
    co_return success();
}

TEST(SharedGpu, CopiesOfCollectivesTakeNoTurnsWhoeverCopies) {
    World world({.machine = "h200", .ranks_per_node = 2, .seed = 3});
    const Ending ending = world.run(copies_in);
    EXPECT_TRUE(ending.good()) << ending;
    for (int rank = 0; rank < 2; ++rank)
        EXPECT_EQ(world.rank(rank).device.counts().turns, 0u) << rank;
}

// Small copies into the GPU go as two rows: as one they would need the queue.
TEST(SharedGpu, StagedMessagesTakeNoTurnsWhoeverComputes) {
    for (const Bytes bytes : {Bytes{8}, 16 * kKiB, 64 * kKiB, 4 * kMiB}) {
        Exchange test{.bytes = bytes,
                      .rounds = 40,
                      .measured = 20,
                      .busy = {20 * kMicrosecond, 20 * kMicrosecond},
                      .ipc = false};
        const Copies copies = run(test);
        EXPECT_GE(copies.staged, 40u) << bytes;
        EXPECT_EQ(test.turns_before + copies.turns, 0u) << bytes;
    }
}

}  // namespace
}  // namespace gantry::world

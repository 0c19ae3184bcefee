// SPDX-License-Identifier: BSD-3-Clause
//
// Small messages through BAR mappings (GDRCopy): what they cost in copies, messages and
// modelled time, with mappings at both ends, at one, and refused. Their own costs are
// published figures (model::WindowCost), so the times are only as good as those.
#include "p2p/wire.hpp"
#include "world/harness/programs.hpp"

namespace gantry::world {
namespace {

using model::Operation;

constexpr Place H = Place::host, D = Place::device;

struct Test {
    Place source = D, sink = D;
    Bytes bytes = 8;
    int sink_gpu = 1;
    bool mapped[2] = {true, true};
    bool refused[2] = {false, false};
    int nodes = 1;
    int rounds = 60, measured = 10;  // of them, at the end
    Nanoseconds time = 0;            // result: a message and its empty answer
};

struct Costs {
    device::fake::Counts sender, receiver;
    std::uint64_t eager = 0;
    Nanoseconds time = 0;
};

Task<Status> messages_and_answers(Rank& rank, Test& test) {
    rank.device.has_gdrcopy = test.mapped[rank.number];
    rank.device.faults.refuse_bar = test.refused[rank.number];
    const bool sends = rank.number == 0;
    Bytebuffer buffer(rank, sends ? test.source : test.sink, test.bytes, sends ? 0 : test.sink_gpu);
    Nanoseconds begin = 0;
    for (int round = 0; round < test.rounds; ++round) {
        if (round == test.rounds - test.measured) {
            rank.device.reset_counts();
            rank.world.shared_memory().reset_counts();
            begin = rank.processor.now();
        }
        if (sends) {
            buffer.fill(static_cast<std::uint64_t>(round));
            Status sent = co_await send(rank, buffer.whole(), 1, 0);
            GANTRY_CO_TRY(sent);
            Received answer = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(answer.status);
        } else {
            buffer.clear();
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), test.bytes));
            Status sent = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(sent);
        }
    }
    if (sends) test.time = (rank.processor.now() - begin) / test.measured;
    co_return success();
}

Costs run(Test test) {
    World world({.machine = "h200", .ranks_per_node = test.nodes == 1 ? 2 : 1, .seed = 5});
    const Ending ending =
        world.run([&test](Rank& rank) { return messages_and_answers(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    return {world.rank(0).device.counts(), world.rank(1).device.counts(),
            world.shared_memory().count(p2p::wire::kEager).messages, test.time};
}

std::uint64_t copies(const device::fake::Counts& counts, Operation operation) {
    return counts.copies[static_cast<int>(operation)];
}

TEST(Gdrcopy, ASmallMessageBetweenTwoGpusIsOneMessageAndNoCopy) {
    const Costs costs = run({});
    EXPECT_EQ(costs.sender.all_copies() + costs.receiver.all_copies(), 0u);
    EXPECT_EQ(costs.sender.launches + costs.receiver.launches, 0u);
    EXPECT_EQ(costs.sender.bar_reads, 10u);
    EXPECT_EQ(costs.receiver.bar_writes, 10u);
    EXPECT_EQ(costs.eager, 20u);  // with the answers
    // So many that the mapping for a direct copy has been opened.
    const Costs without = run({.mapped = {false, false}, .rounds = 600});
    EXPECT_EQ(without.sender.bar_reads + without.receiver.bar_writes, 0u);
    EXPECT_EQ(without.sender.all_copies() + without.receiver.all_copies(), 10u);
    EXPECT_LT(2 * costs.time, without.time);
    EXPECT_LT(costs.time, 4 * kMicrosecond);
}

TEST(Gdrcopy, OnOneSharedGpuTheQueueIsLeftAlone) {
    const Costs costs = run({.sink_gpu = 0});
    EXPECT_EQ(costs.sender.all_copies() + costs.receiver.all_copies(), 0u);
    const Costs without = run({.sink_gpu = 0, .mapped = {false, false}});
    EXPECT_LT(3 * costs.time, without.time);
}

TEST(Gdrcopy, OfOneEndOnADeviceTheOtherIsAsBetweenHosts) {
    const Costs out = run({.source = D, .sink = H});
    EXPECT_EQ(out.sender.bar_reads, 10u);
    EXPECT_EQ(out.sender.all_copies() + out.receiver.all_copies(), 0u);
    const Costs in = run({.source = H, .sink = D});
    EXPECT_EQ(in.receiver.bar_writes, 10u);
    EXPECT_EQ(in.sender.all_copies() + in.receiver.all_copies(), 0u);
    EXPECT_LT(3 * in.time, run({.source = H, .sink = D, .mapped = {false, false}}).time);
}

TEST(Gdrcopy, BetweenTwoNodesToo) {
    const Costs costs = run({.nodes = 2});
    EXPECT_EQ(costs.sender.all_copies() + costs.receiver.all_copies(), 0u);
    EXPECT_EQ(costs.sender.bar_reads, 10u);
    EXPECT_EQ(costs.receiver.bar_writes, 10u);
}

TEST(Gdrcopy, AtTheSourceAloneTheReceiverCopies) {
    for (const int gpu : {0, 1}) {
        const Costs costs = run({.sink_gpu = gpu, .mapped = {true, false}});
        EXPECT_EQ(costs.sender.bar_reads, 10u);
        EXPECT_EQ(costs.sender.all_copies(), 0u);
        EXPECT_EQ(costs.receiver.all_copies(), 10u);
    }
}

TEST(Gdrcopy, RefusedAtTheSinkOfASharedGpuNoCopyWaitsForATurn) {
    const Costs costs = run({.sink_gpu = 0, .refused = {false, true}});
    EXPECT_EQ(costs.sender.bar_reads, 10u);
    EXPECT_EQ(costs.receiver.bar_writes, 0u);
    EXPECT_LT(costs.time, 20 * kMicrosecond);
}

TEST(Gdrcopy, AtTheSinkAloneTheSenderCopies) {
    const Costs costs = run({.sink_gpu = 0, .mapped = {false, true}});
    EXPECT_EQ(costs.receiver.all_copies(), 0u);
    EXPECT_EQ(costs.sender.all_copies(), 10u);
    const Costs far = run({.mapped = {false, true}, .nodes = 2});
    EXPECT_EQ(far.receiver.bar_writes, 10u);
    EXPECT_EQ(copies(far.sender, Operation::d2h), 10u);
}

TEST(Gdrcopy, AFewMessagesOpenNothing) {
    const Costs costs = run({.rounds = 6, .measured = 6});
    EXPECT_EQ(costs.sender.bar_opens + costs.receiver.bar_opens, 0u);
    EXPECT_EQ(costs.sender.bar_reads + costs.receiver.bar_writes, 0u);
}

TEST(Gdrcopy, RefusalsLeaveEverythingAsWithout) {
    const Costs costs = run({.refused = {true, true}});
    const Costs without = run({.mapped = {false, false}});
    EXPECT_EQ(costs.sender.bar_reads + costs.receiver.bar_writes, 0u);
    EXPECT_EQ(costs.sender.all_copies(), without.sender.all_copies());
    EXPECT_EQ(costs.receiver.all_copies(), without.receiver.all_copies());
}

TEST(Gdrcopy, LargeMessagesGoAsWithout) {
    const Costs costs = run({.bytes = 64 * kKiB});
    EXPECT_EQ(costs.sender.bar_reads + costs.receiver.bar_writes, 0u);
    EXPECT_EQ(costs.time, run({.bytes = 64 * kKiB, .mapped = {false, false}}).time);
}

// Many at once are better read by one kernel of the receiver's.
Task<Status> burst(Rank& rank) {
    constexpr int kMany = 32;
    rank.device.has_gdrcopy = true;
    Bytebuffer buffer(rank, D, kMany * 8, rank.number);
    for (int round = 0; round < 40; ++round) {
        if (round == 39) rank.device.reset_counts();
        if (rank.number == 0) buffer.fill(static_cast<std::uint64_t>(round));
        std::vector<Result<p2p::Request*>> requests;
        for (Bytes i = 0; i < kMany; ++i)
            requests.push_back(
                rank.number == 0 ? rank.messenger.isend(rank.all, buffer.part(8 * i, 8), 1, 0,
                                                        p2p::SendMode::standard)
                                 : rank.messenger.ireceive(rank.all, buffer.part(8 * i, 8), 0, 0));
        for (auto& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(ended.status);
        }
        if (rank.number == 1)
            WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), kMany * 8));
        Status met = co_await meet(rank, 9);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

TEST(Gdrcopy, OfManyAtOnceOnlyTheFirstAreReadByTheProcessor) {
    World world({.machine = "h200", .ranks_per_node = 2, .seed = 5});
    const Ending ending = world.run([](Rank& rank) { return burst(rank); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_LE(world.rank(0).device.counts().bar_reads, 4u);
    EXPECT_GT(world.rank(0).device.counts().bar_reads, 0u);
}

// Three buffers, one after the other.
Task<Status> lives(Rank& rank) {
    rank.device.has_gdrcopy = true;
    for (int life = 0; life < 3; ++life) {
        Bytebuffer buffer(rank, D, 64, rank.number);
        for (int round = 0; round < 40; ++round) {
            if (rank.number == 0) {
                buffer.fill(static_cast<std::uint64_t>(round));
                Status sent = co_await send(rank, buffer.whole(), 1, 0);
                GANTRY_CO_TRY(sent);
                Received answer = co_await receive(rank, kNothing, 1, 1);
                GANTRY_CO_TRY(answer.status);
            } else {
                Received received = co_await receive(rank, buffer.whole(), 0, 0);
                GANTRY_CO_TRY(received.status);
                WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), 64));
                Status sent = co_await send(rank, kNothing, 0, 1);
                GANTRY_CO_TRY(sent);
            }
        }
    }
    co_return success();
}

TEST(Gdrcopy, EachAllocationEarnsItsOwnWindow) {
    World world({.machine = "h200", .ranks_per_node = 2, .seed = 5});
    const Ending ending = world.run([](Rank& rank) { return lives(rank); });
    EXPECT_TRUE(ending.good()) << ending;
    for (int rank = 0; rank < 2; ++rank)
        EXPECT_EQ(world.rank(rank).device.counts().bar_opens, 3u) << rank;
}

}  // namespace
}  // namespace gantry::world

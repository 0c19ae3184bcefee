// SPDX-License-Identifier: BSD-3-Clause
//
// How the end of a put after an RTR is told (p2p/protocols/put_after_rtr.cpp): by a flag, which the
// device raises behind a large copy; one put to a peer at a time, whatever other threads do.
#include "world/harness/ready_to_receive.hpp"

#include "p2p/wire.hpp"

namespace gantry::world {
namespace {

namespace wire = p2p::wire;

constexpr Bytes kLarge = kMiB;

std::uint64_t count(World& world, wire::Kind kind) {
    return world.shared_memory().count(kind).messages;
}

Task<Status> some_rounds(Rank& rank, Bytes bytes) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    for (int round = 0; round < 10; ++round) {
        Status done = co_await one(rank, buffer, kLearn + round);
        GANTRY_CO_TRY(done);
    }
    WORLD_CHECK(rank.number == 1 || puts(rank) == 10);
    co_return success();
}

TEST(PutFlags, NoMessageTellsOfTheEnd) {
    for (const Bytes bytes : {kBytes, kLarge}) {
        World world(two_gpus());
        const Ending ending = world.run([bytes](Rank& rank) { return some_rounds(rank, bytes); });
        EXPECT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle());
        EXPECT_GE(count(world, wire::kPutRequest), 10u);
        EXPECT_EQ(count(world, wire::kChunk), 0u) << bytes;
    }
}

Task<Status> a_sender_that_is_kept_away(Rank& rank, Nanoseconds& took) {
    Bytebuffer buffer(rank, Place::device, kLarge, rank.number);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    Status done = co_await send_and_compute(rank, buffer, Sends::blocking, took);
    GANTRY_CO_TRY(done);
    WORLD_CHECK(rank.number == 1 || puts(rank) == 1);
    co_return success();
}

TEST(PutFlags, ALargePutArrivesWithoutItsSender) {
    World world(two_gpus());
    Nanoseconds took = 0;
    const Ending ending =
        world.run([&took](Rank& rank) { return a_sender_that_is_kept_away(rank, took); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_LT(took, kMillisecond);
    EXPECT_TRUE(world.settle());
}

// --- two threads of a rank, each in a communicator of its own -----------------------------------
// They send the halves of one buffer.

p2p::Group another(const Rank& rank) {
    p2p::Group group = rank.all;
    group.context = 77;
    return group;
}

// The second receive is posted while the first one's put is under way, and its message comes before
// the receiver has looked at the flag of the first.
Task<Status> receives_of_two_threads(Rank& rank) {
    const p2p::Group group = another(rank);
    Bytebuffer both(rank, Place::device, 2 * kLarge, rank.number);
    const p2p::Buffer first = both.part(0, kLarge), second = both.part(kLarge, kLarge);
    Status ready = co_await learn_to_put(rank, both);
    GANTRY_CO_TRY(ready);
    if (rank.number == 0) {
        both.fill(1);
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        Status sent = co_await send_and_wait(rank, first, 1, 7);
        GANTRY_CO_TRY(sent);
        Received ended = co_await finish(
            rank.executor, rank,
            rank.messenger.send_to_wait(group, second, 1, 7, p2p::SendMode::standard));
        GANTRY_CO_TRY(ended.status);
        WORLD_CHECK(puts(rank) == 1);
        co_return success();
    }
    both.clear();
    Result<p2p::Request*> one = rank.messenger.receive_to_wait(rank.all, first, 0, 7);
    const std::uint64_t before = count(rank.world, wire::kPutRequest);
    while (count(rank.world, wire::kPutRequest) == before)
        co_await rank.turn();
    Status slept = co_await rank.sleep(rank.executor, kMicrosecond);
    GANTRY_CO_TRY(slept);
    WORLD_CHECK(one.ok() && !(*one)->done);
    Result<p2p::Request*> two = rank.messenger.receive_to_wait(group, second, 0, 7);
    rank.work(200 * kMicrosecond);
    Received got = co_await finish(rank.executor, rank, std::move(one));
    GANTRY_CO_TRY(got.status);
    got = co_await finish(rank.executor, rank, std::move(two));
    GANTRY_CO_TRY(got.status);
    WORLD_CHECK(both.holds(1, 2 * kLarge));
    co_return success();
}

TEST(PutFlags, NoRtrLeavesWhileAPutIsComing) {
    World world(two_gpus());
    const Ending ending = world.run(&receives_of_two_threads);
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
}

// The RTR of the next receive leaves before the sender has seen the end of the put before: its receiver
// was told by the device.
Task<Status> sends_of_two_threads(Rank& rank, wire::RtrSameBuffer& next) {
    const p2p::Group group = another(rank);
    Bytebuffer both(rank, Place::device, 2 * kLarge, rank.number);
    const p2p::Buffer first = both.part(0, kLarge), second = both.part(kLarge, kLarge);
    Status ready = co_await learn_to_put(rank, both);
    GANTRY_CO_TRY(ready);
    if (rank.number == 0) {
        both.fill(1);
        Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        const auto standard = p2p::SendMode::standard;
        Result<p2p::Request*> one = rank.messenger.send_to_wait(rank.all, first, 1, 7, standard);
        rank.transfer.messages.on_message(1, wire::kRtrSameBuffer, wire::bytes_of(next), {});
        Result<p2p::Request*> two = rank.messenger.send_to_wait(group, second, 1, 7, standard);
        WORLD_CHECK(one.ok() && !(*one)->done);
        Received ended = co_await finish(rank.executor, rank, std::move(one));
        GANTRY_CO_TRY(ended.status);
        ended = co_await finish(rank.executor, rank, std::move(two));
        GANTRY_CO_TRY(ended.status);
        WORLD_CHECK(puts(rank) == 1);
        co_return success();
    }
    both.clear();
    Result<device::Location> place = rank.device.classify(second.data(), kLarge);
    GANTRY_CO_TRY(place.status());
    // A message and a word of the barrier each round, and the first half.
    next = {group.context,   0,      7,
            2 * kLearn + 1,  kLarge, reinterpret_cast<std::uintptr_t>(second.data()),
            place->buffer_id};
    Received got = co_await receive_and_wait(rank, first, 0, 7);
    GANTRY_CO_TRY(got.status);
    got = co_await finish(rank.executor, rank, rank.messenger.ireceive(group, second, 0, 7));
    GANTRY_CO_TRY(got.status);
    WORLD_CHECK(both.holds(1, 2 * kLarge));
    co_return success();
}

TEST(PutFlags, OneOfTwoThreadsPutsTheOthersMessageGoesAnotherWay) {
    World world(two_gpus());
    wire::RtrSameBuffer next{};
    const Ending ending =
        world.run([&next](Rank& rank) { return sends_of_two_threads(rank, next); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
}

}  // namespace
}  // namespace gantry::world

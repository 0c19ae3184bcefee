// SPDX-License-Identifier: BSD-3-Clause
//
// A message of one piece in a slot, told by the flag that the copy engine raises behind it: the
// receiver needs nothing of the sender's processor, whatever goes wrong is an error in time, and no
// slot is lost or given away twice.
#include "world/harness/programs.hpp"

#include "p2p/wire.hpp"

namespace gantry::world {
namespace {

namespace wire = p2p::wire;

constexpr Bytes kBytes = 64 * kKiB;
// Of one use of the pool, a quarter: more messages than that are more than it has slots.
constexpr int kManyMessages = 200;

void staged(config::Config& config) {
    config.ipc = false;
}

Options one_node(std::uint64_t seed) {
    return {.machine = "h200",
            .ranks_per_node = 2,
            .seed = seed,
            .jitter = kMicrosecond,
            .change_config = &staged};
}

std::uint64_t chunks(World& world) {
    return world.shared_memory().count(wire::kChunk).messages;
}

struct Late {
    Nanoseconds sent = 0, received = 0;
};

Task<Status> sender_computes(Rank& rank, Nanoseconds computes, Late& late) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    if (rank.number == 0) {
        buffer.fill(5);
        Received token = co_await receive(rank, kNothing, 1, 1);  // the receive is posted
        GANTRY_CO_TRY(token.status);
        late.sent = rank.processor.now();
        Result<p2p::Request*> sending =
            rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard);
        rank.work(computes);
        Received sent = co_await finish(rank.executor, rank, std::move(sending));
        co_return sent.status;
    }
    Result<p2p::Request*> posted = rank.messenger.ireceive(rank.all, buffer.whole(), 0, 0);
    Status token = co_await send(rank, kNothing, 0, 1);
    GANTRY_CO_TRY(token);
    Received received = co_await finish(rank.executor, rank, std::move(posted));
    GANTRY_CO_TRY(received.status);
    late.received = rank.processor.now();
    WORLD_CHECK(buffer.holds(5, kBytes));
    co_return success();
}

TEST(FlaggedSlots, AMessageArrivesWhileItsSenderComputes) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Late late;
        World world(one_node(seed));
        const Ending ending = world.run(
            [&late](Rank& rank) { return sender_computes(rank, 5 * kMillisecond, late); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_LT(late.received - late.sent, kMillisecond) << "seed " << seed;
        EXPECT_EQ(chunks(world), 0u);
    }
}

// The receiver gives the slot back before the sender has seen its copy's end: it is free when both
// have happened, and not twice.
Task<Status> blind_sender(Rank& rank) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    for (std::uint64_t i = 0; i < kManyMessages; ++i) {
        if (rank.number == 0) {
            buffer.fill(i);
            rank.device.faults.blind = true;
            Result<p2p::Request*> sending =
                rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard);
            Received emptied = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(emptied.status);
            WORLD_CHECK(sending.ok() && !(*sending)->done);
            rank.device.faults.blind = false;
            Received sent = co_await finish(rank.executor, rank, std::move(sending));
            GANTRY_CO_TRY(sent.status);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(i, kBytes));
            Status told = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(told);
        }
    }
    co_return success();
}

TEST(FlaggedSlots, ASlotThatComesBackBeforeItsCopyIsSeenToEndIsFreeOnce) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        World world(one_node(seed));
        const Ending ending = world.run(&blind_sender);
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(chunks(world), 0u) << "slots were lost";
    }
}

// Every other message's copy fails: both ends hear of it, and the slot serves the next one.
Task<Status> failing_copies(Rank& rank) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    for (std::uint64_t i = 0; i < kManyMessages; ++i) {
        const bool fails = i % 2 == 0;
        Status status;
        if (rank.number == 0) {
            buffer.fill(i);
            if (fails) rank.device.faults.fail_copy = 1;
            status = co_await send(rank, buffer.whole(), 1, 0);
            Received token = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(token.status);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            status = received.status;
            if (!fails) WORLD_CHECK(buffer.holds(i, kBytes));
            Status told = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(told);
        }
        WORLD_CHECK(status.ok() != fails);
    }
    co_return success();
}

TEST(FlaggedSlots, ACopyThatFailsEndsBothSidesAndLosesNoSlot) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        World world(one_node(seed));
        const Ending ending = world.run(&failing_copies);
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(chunks(world), 0u) << "slots were lost";
    }
}

// The request cannot leave, though the copy to the slot that it names has begun.
Task<Status> failing_requests(Rank& rank, bool& refuse) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    for (std::uint64_t i = 0; i < kManyMessages; ++i) {
        if (rank.number == 0) {
            buffer.fill(i);
            refuse = true;
            Status status = co_await send(rank, buffer.whole(), 1, 0);
            WORLD_CHECK(!status.ok());
            refuse = false;
            status = co_await send(rank, buffer.whole(), 1, 0);
            GANTRY_CO_TRY(status);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(i, kBytes));
        }
    }
    co_return success();
}

TEST(FlaggedSlots, ARequestThatCannotLeaveLosesNoSlot) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        bool refuse = false;
        Options options = one_node(seed);
        options.on_send_in_node = [&refuse](int, transport::MessageKind kind) {
            const bool request = kind == wire::kRequestToSend || kind == wire::kRequestAgain;
            return refuse && request ? failure(MPI_ERR_NO_MEM, "no room for it") : success();
        };
        World world(std::move(options));
        const Ending ending =
            world.run([&refuse](Rank& rank) { return failing_requests(rank, refuse); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(chunks(world), 0u) << "slots were lost";
    }
}

// Neither a receive without room nor one that comes late keeps the slot.
Task<Status> unwanted(Rank& rank) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    for (std::uint64_t i = 0; i < kManyMessages; ++i) {
        if (rank.number == 0) {
            buffer.fill(i);
            Status status = co_await send(rank, buffer.whole(), 1, 0);
            GANTRY_CO_TRY(status);
            Received token = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(token.status);
        } else {
            if (i % 3 == 0) {
                Status slept = co_await rank.sleep(rank.executor, 100 * kMicrosecond);
                GANTRY_CO_TRY(slept);
            }
            const Bytes room = i % 2 == 0 ? 0 : 1000;
            Received received = co_await receive(rank, buffer.part(0, room), 0, 0);
            WORLD_CHECK(received.status.error_class() == MPI_ERR_TRUNCATE);
            Status told = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(told);
        }
    }
    co_return success();
}

TEST(FlaggedSlots, ATruncatedMessageGivesItsSlotBack) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        World world(one_node(seed));
        const Ending ending = world.run(&unwanted);
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(chunks(world), 0u) << "slots were lost";
    }
}

}  // namespace
}  // namespace gantry::world

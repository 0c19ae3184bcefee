// SPDX-License-Identifier: BSD-3-Clause
//
// Messages notified by flags beside their slots: the receiver of one piece needs nothing of the
// sender's processor, none needs an answer, whatever goes wrong is an error in time, and no slot is lost
// or given away twice. Each with the record of `explain` and without: it changes nothing.
#include "world/harness/programs.hpp"

#include "sanitized.hpp"
#include "transfer/notify_flags.hpp"
#include "p2p/wire.hpp"

namespace gantry::world {
namespace {

namespace wire = p2p::wire;

constexpr Bytes kOnePiece = 64 * kKiB, kChunk = 256 * kKiB, kFourPieces = kMiB,
                kEightPieces = 2 * kMiB;
// More than there are slots for in one use of the pool, a quarter.
std::uint64_t many(Bytes bytes) {
    return bytes > kOnePiece ? 20 : 200;
}

struct Way {
    const char* name;
    Bytes bytes;
    bool planned;        // each by itself, with a whole RTS; else like the one before
    bool flows = false;  // where a kernel stays
};
constexpr Way kOfOnePiece[] = {{"OnePiece", kOnePiece, true},
                               {"OnePieceLikeTheLast", kOnePiece, false}};
constexpr Way kOfMorePieces[] = {{"FourPieces", kFourPieces, true},
                                 {"FourPiecesLikeTheLast", kFourPieces, false},
                                 {"EightPieces", kEightPieces, true},
                                 {"EightPiecesLikeTheLast", kEightPieces, false}};

constexpr Way kThatFlow[] = {{"OnePieceThatFlows", kOnePiece, false, true},
                             {"FourPiecesThatFlow", kFourPieces, false, true},
                             {"EightPiecesThatFlow", kEightPieces, false, true}};

void staged(config::Config& config) {
    config.ipc = false;
    config.chunk = kChunk;
    config.depth = 8;  // all of a message leaves before its verdict
}

int pieces_of(Bytes bytes) {
    return static_cast<int>(divide_up(bytes, kChunk));
}

Options one_node(std::uint64_t seed, const Way& way) {
    return {.machine = "h200",
            .ranks_per_node = 2,
            .seed = seed,
            .jitter = kMicrosecond,
            .mechanisms = way.planned ? "-selection_cache,-rts_templates,-one_copy" : "all",
            .change_config = [way](config::Config& config) {
                staged(config);
                if (way.flows) config.idle_timeout = 50 * kMicrosecond;
            }};
}

std::uint64_t count(World& world, wire::Kind kind) {
    return world.shared_memory().count(kind).messages;
}

class FlaggedSlots : public testing::TestWithParam<Way> {
  protected:
    Bytes bytes() const { return GetParam().bytes; }
    Options options(std::uint64_t seed) const { return one_node(seed, GetParam()); }
    // Runs it with some seeds. All messages were told by flags: none had to do without a slot.
    void run(const std::function<Task<Status>(Rank&, Bytes)>& program) {
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed)
            run(program, options(seed));
    }
    void run(const std::function<Task<Status>(Rank&, Bytes)>& program, Options options) {
        World world(std::move(options));
        const Bytes each = bytes();
        const Ending ending =
            world.run([&program, each](Rank& rank) { return program(rank, each); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_EQ(count(world, wire::kChunk), 0u) << "slots were lost";
        for (int rank = 0; rank < 2; ++rank)
            flowed_ += world.rank(rank).device.counts().cuts_through;
    }
    void expect_flow() const {
        if (GetParam().flows) {
            EXPECT_GT(flowed_, 4 * kSeeds);
        }
    }

  private:
    static constexpr std::uint64_t kSeeds = repetitions(5);
    std::uint64_t flowed_ = 0;  // messages, at either end
};
class FlagsOfTheDevice : public FlaggedSlots {};

std::string name_of(const testing::TestParamInfo<Way>& way) {
    return way.param.name;
}

// --- the sender's processor is not needed -------------------------------------------------------

struct Late {
    Nanoseconds sent = 0, received = 0;
};

Task<Status> sender_computes(Rank& rank, Bytes bytes, Late& late) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; i < 3; ++i) {
        if (rank.number == 0) {
            buffer.fill(i);
            Received token = co_await receive(rank, kNothing, 1, 1);  // the receive is posted
            GANTRY_CO_TRY(token.status);
            late.sent = rank.processor.now();
            Result<p2p::Request*> sending =
                rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard);
            rank.work(5 * kMillisecond);
            Received sent = co_await finish(rank.executor, rank, std::move(sending));
            GANTRY_CO_TRY(sent.status);
        } else {
            Result<p2p::Request*> posted = rank.messenger.ireceive(rank.all, buffer.whole(), 0, 0);
            Status token = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(token);
            Received received = co_await finish(rank.executor, rank, std::move(posted));
            GANTRY_CO_TRY(received.status);
            late.received = rank.processor.now();
            WORLD_CHECK(buffer.holds(i, bytes));
        }
    }
    co_return success();
}

TEST_P(FlagsOfTheDevice, AMessageArrivesWhileItsSenderComputes) {
    Late late;
    run([&late](Rank& rank, Bytes each) { return sender_computes(rank, each, late); });
    EXPECT_LT(late.received - late.sent, kMillisecond);
}

// The receiver gives the slot back before the sender has seen its copy's end: it is free when both
// have happened, and not twice.
Task<Status> blind_sender(Rank& rank, Bytes bytes) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; i < many(bytes); ++i) {
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
            WORLD_CHECK(buffer.holds(i, bytes));
            Status told = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(told);
        }
    }
    co_return success();
}

TEST_P(FlagsOfTheDevice, ASlotThatComesBackBeforeItsCopyIsSeenToEndIsFreeOnce) {
    run(&blind_sender);
    expect_flow();
}

// The receiver's copy fails before the sender has seen its own end.
Task<Status> failing_receiver(Rank& rank, Bytes bytes) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; i < many(bytes); ++i) {
        const bool fails = i % 2 == 1;
        if (rank.number == 0) {
            buffer.fill(i);
            rank.device.faults.blind = true;
            Result<p2p::Request*> sending =
                rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard);
            Received ended = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(ended.status);
            rank.device.faults.blind = false;
            Received sent = co_await finish(rank.executor, rank, std::move(sending));
            WORLD_CHECK(sent.status.ok() != fails);
        } else {
            if (fails) rank.device.faults.fail_copy = 1;
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            WORLD_CHECK(received.status.ok() != fails);
            Status told = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(told);
        }
    }
    co_return success();
}

TEST_P(FlagsOfTheDevice, AReceiverThatGivesUpFailsTheSendThatIsUnderWay) {
    run(&failing_receiver);
}

INSTANTIATE_TEST_SUITE_P(One, FlagsOfTheDevice, testing::ValuesIn(kOfOnePiece), &name_of);
INSTANTIATE_TEST_SUITE_P(Flowing, FlagsOfTheDevice, testing::Values(kThatFlow[0]), &name_of);

// --- one like the last --------------------------------------------------------------------------

Task<Status> repeat(Rank& rank, Bytes bytes) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; i < many(bytes); ++i) {
        Status passed = co_await pass_on(rank, buffer, i);
        GANTRY_CO_TRY(passed);
    }
    co_return success();
}

TEST_P(FlaggedSlots, OfAMessageLikeTheLastNobodyIsAsked) {
    World world(options(1));
    const Bytes each = bytes();
    const Ending ending = world.run([each](Rank& rank) { return repeat(rank, each); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
    EXPECT_EQ(count(world, wire::kChunk), 0u);
    EXPECT_EQ(count(world, wire::kCts), GetParam().planned ? many(each) : 0u);
    EXPECT_EQ(count(world, wire::kRts) + count(world, wire::kRtsFromTemplate), many(each));
    const std::uint64_t by_pieces = many(each) * static_cast<std::uint64_t>(pieces_of(each));
    if (!GetParam().flows || by_pieces == many(each)) {
        EXPECT_EQ(count(world, wire::kCredit), by_pieces);
    } else {  // what flows goes back at once
        EXPECT_LT(count(world, wire::kCredit), by_pieces / 2);
    }
}

// --- what goes wrong ----------------------------------------------------------------------------

// Every other message's copy fails at one end, each piece's in turn: both hear of it, or the sender
// was done before; and the slots serve the next ones. `late`: until the receive is posted, behind
// the word of the failure.
Task<Status> failing_copies(Rank& rank, Bytes bytes, bool flows, int at, Nanoseconds late = 0) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; i < many(bytes); ++i) {
        const bool fails = i % 2 == 0;
        if (fails && rank.number == at)
            rank.device.faults.fail_copy =
                flows ? 1 : 1 + static_cast<int>(i / 2) % pieces_of(bytes);
        Status status;
        if (rank.number == 0) {
            buffer.fill(i);
            status = co_await send(rank, buffer.whole(), 1, 0);
            WORLD_CHECK(status.ok() != fails || (fails && at == 1));
            Received token = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(token.status);
        } else {
            if (late > 0) {
                Status slept = co_await rank.sleep(rank.executor, late);
                GANTRY_CO_TRY(slept);
            }
            // It looks late: at flags and at the word of the failure in one turn.
            Result<p2p::Request*> posted = rank.messenger.ireceive(rank.all, buffer.whole(), 0, 0);
            if (fails && rank.world.options().seed % 2 == 0) rank.work(kMillisecond);
            Received received = co_await finish(rank.executor, rank, std::move(posted));
            WORLD_CHECK(received.status.ok() != fails);
            if (!fails) WORLD_CHECK(buffer.holds(i, bytes));
            Status told = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(told);
        }
    }
    co_return success();
}

TEST_P(FlaggedSlots, ACopyThatFailsAtTheSenderEndsBothSidesAndLosesNoSlot) {
    const bool flows = GetParam().flows;
    run([flows](Rank& rank, Bytes each) { return failing_copies(rank, each, flows, 0); });
    expect_flow();
}

TEST_P(FlaggedSlots, ACopyThatFailsBeforeItsReceiveIsPostedLosesNoSlot) {
    const bool flows = GetParam().flows;
    run([flows](Rank& rank, Bytes each) {
        return failing_copies(rank, each, flows, 0, 2 * kMillisecond);
    });
}

TEST_P(FlaggedSlots, ACopyThatFailsAtTheReceiverEndsItAndLosesNoSlot) {
    const bool flows = GetParam().flows;
    run([flows](Rank& rank, Bytes each) { return failing_copies(rank, each, flows, 1); });
    expect_flow();
}

// The request cannot leave, though a copy to the slot that it names has begun.
Task<Status> failing_requests(Rank& rank, Bytes bytes, bool& refuse) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; i < many(bytes); ++i) {
        Status passed = co_await pass_on_at_second_try(rank, buffer, i, refuse);
        GANTRY_CO_TRY(passed);
    }
    co_return success();
}

TEST_P(FlaggedSlots, ARequestThatCannotLeaveLosesNoSlot) {
    for (std::uint64_t seed = 1; seed <= repetitions(5); ++seed) {
        bool refuse = false;
        Options with = options(seed);
        with.on_send_in_node = [&refuse](int, transport::MessageKind kind) {
            return refuse && is_request(kind) ? failure(MPI_ERR_NO_MEM, "no room for it")
                                              : success();
        };
        run([&refuse](Rank& rank, Bytes each) { return failing_requests(rank, each, refuse); },
            std::move(with));
    }
}

// Neither a receive without room nor one that comes late keeps the slots. What flows does so as long as
// most are taken as they come.
Task<Status> unwanted(Rank& rank, Bytes bytes, bool flows) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; i < many(bytes); ++i) {
        if (rank.number == 0) {
            buffer.fill(i);
            Status status = co_await send(rank, buffer.whole(), 1, 0);
            GANTRY_CO_TRY(status);
            Received token = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(token.status);
        } else {
            if (i % 3 == 0 && !flows) {
                Status slept = co_await rank.sleep(rank.executor, 100 * kMicrosecond);
                GANTRY_CO_TRY(slept);
            }
            const bool fits = flows ? i % 8 != 7 : i % 4 == 0;
            const Bytes room = fits ? bytes : i % 2 == 0 ? 0 : 1000;
            Received received = co_await receive(rank, buffer.part(0, room), 0, 0);
            WORLD_CHECK(received.status.error_class() ==
                        (room == bytes ? MPI_SUCCESS : MPI_ERR_TRUNCATE));
            Status told = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(told);
        }
    }
    co_return success();
}

TEST_P(FlaggedSlots, ATruncatedMessageGivesItsSlotsBack) {
    const bool flows = GetParam().flows;
    run([flows](Rank& rank, Bytes each) { return unwanted(rank, each, flows); });
    expect_flow();
}

// One of the two dies at some moment of a message: the other hears of it, or has the right bytes.
struct Survivor {
    int done = 0;
    Nanoseconds died = 0;  // the other one, or will
    Status status;
};

Task<Status> until_it_dies(Rank& rank, Bytes bytes, int victim, Nanoseconds later,
                           Survivor& survivor) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (std::uint64_t i = 0; survivor.status.ok(); ++i) {
        if (i == 4 && rank.number != victim) {
            survivor.died = rank.processor.now() + later;
            rank.world.kill_at(survivor.died, victim);
        }
        Status status;
        if (rank.number == 0) {
            buffer.fill(i);
            status = co_await send(rank, buffer.whole(), 1, 0);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            status = received.status;
            if (status.ok()) WORLD_CHECK(buffer.holds(i, bytes));
        }
        if (!status.ok()) {
            survivor.status = status;
            break;
        }
        ++survivor.done;
        if (rank.number == 0) {
            Received token = co_await receive(rank, kNothing, 1, 1);
            status = token.status;
        } else {
            status = co_await send(rank, kNothing, 0, 1);
        }
        if (!status.ok()) survivor.status = status;
    }
    co_return success();
}

TEST_P(FlaggedSlots, APeerThatDiesIsAnErrorInTime) {
    for (const int victim : {0, 1}) {
        for (std::uint64_t seed = 1; seed <= repetitions(25); ++seed) {
            SCOPED_TRACE(testing::Message() << "rank " << victim << " dies, seed " << seed);
            World world(options(seed));
            const Bytes each = bytes();
            Survivor ranks[2];
            const auto later = static_cast<Nanoseconds>(seed) * 3 * kMicrosecond;
            const Ending ending = world.run([&, each](Rank& rank) {
                return until_it_dies(rank, each, victim, later, ranks[rank.number]);
            });
            ASSERT_TRUE(ending.good()) << ending;
            const Survivor& survivor = ranks[1 - victim];
            EXPECT_FALSE(survivor.status.ok());
            EXPECT_GE(survivor.done, 4);
            EXPECT_LT(ending.time, survivor.died + 10 * kMillisecond);
        }
    }
}

// The receiver dies while the copy is under way: the send is an error, not a success that nobody saw.
Task<Status> a_send_to_the_dead(Rank& rank, Bytes bytes) {
    Bytebuffer buffer(rank, Place::device, bytes, rank.number);
    for (int i = 0; i < 4; ++i) {
        if (rank.number == 0) {
            Received token = co_await receive(rank, kNothing, 1, 1);
            GANTRY_CO_TRY(token.status);
            if (i == 3) {
                rank.device.faults.hang_copy = 1;
                rank.device.faults.hang_for = kMillisecond;
                rank.world.kill_at(rank.processor.now() + 20 * kMicrosecond, 1);
            }
            Status sent = co_await send(rank, buffer.whole(), 1, 0);
            WORLD_CHECK(sent.ok() == (i < 3));
        } else {
            Status token = co_await send(rank, kNothing, 0, 1);
            GANTRY_CO_TRY(token);
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            GANTRY_CO_TRY(received.status);
        }
    }
    co_return success();
}

TEST_P(FlaggedSlots, ASendWhoseReceiverDiesMeanwhileIsAnError) {
    for (std::uint64_t seed = 1; seed <= repetitions(5); ++seed) {
        World world(options(seed));
        const Bytes each = bytes();
        const Ending ending =
            world.run([each](Rank& rank) { return a_send_to_the_dead(rank, each); });
        EXPECT_TRUE(ending.good()) << ending;
    }
}

INSTANTIATE_TEST_SUITE_P(One, FlaggedSlots, testing::ValuesIn(kOfOnePiece), &name_of);
INSTANTIATE_TEST_SUITE_P(More, FlaggedSlots, testing::ValuesIn(kOfMorePieces), &name_of);
INSTANTIATE_TEST_SUITE_P(Flowing, FlaggedSlots, testing::ValuesIn(kThatFlow), &name_of);

}  // namespace
}  // namespace gantry::world

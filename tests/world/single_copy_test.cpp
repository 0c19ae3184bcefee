// SPDX-License-Identifier: BSD-3-Clause
//
// Large host messages inside a node that the receiver reads out of the sender's memory (docs/design/
// single-copy.md): offered where it is allowed and expected to win, and by slots whatever is refused, at
// the start or in the middle.
#include "world/harness/programs.hpp"

#include "p2p/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gantry::world {
namespace {

constexpr double kSlow = 5e9, kFast = 40e9;

Options options_of(std::uint64_t seed = 1) {
    return {.machine = "c2050-qdr",
            .ranks = 2,
            .ranks_per_node = 2,
            .seed = seed,
            .jitter = static_cast<Nanoseconds>(seed % 3) * kMicrosecond,
            .mechanisms = "all",
            .change_machine =
                [](model::Machine& machine) {
                    machine.shared_memory.read_latency = 500;
                    machine.shared_memory.read_rate = model::Rate(kFast);
                },
            .change_config = [](config::Config& config) { config.device_pool = 4 * kMiB; }};
}

std::uint64_t word_of(double slots, double reads) {
    return std::uint64_t{plan::step_of(slots, plan::kRateUnit)} |
           std::uint64_t{plan::step_of(reads, plan::kRateUnit)} << 8 |
           std::uint64_t{plan::step_of(500, plan::kTimeUnit)} << 16;
}
// As if both ranks had measured that.
void measured(World& world, double slots, double reads) {
    for (const int rank : {0, 1})
        world.shared_memory().host_rates(rank) = word_of(slots, reads);
}

struct Sent {
    Bytes bytes = kMiB;
    int messages = 3;
    Bytes room = 0;  // of the receive, where it is less
    p2p::SendMode mode = p2p::SendMode::standard;
    Place place = Place::host;
    int truncated = 0;
};

Task<Status> sends(Rank& rank, Sent& sent) {
    for (int i = 0; i < sent.messages; ++i) {
        const auto key = static_cast<std::uint64_t>(i) + sent.bytes;
        const bool late = i % 2 == 1;  // the message is there before its receive
        Bytebuffer buffer(rank, rank.number == 0 ? Place::host : sent.place, sent.bytes);
        if (late == (rank.number == 1)) {
            Status slept = co_await rank.sleep(rank.executor, 100 * kMicrosecond);
            GANTRY_CO_TRY(slept);
        }
        if (rank.number == 0) {
            buffer.fill(key);
            Status status = co_await send(rank, buffer.whole(), 1, 1, sent.mode);
            buffer.fill(~key);  // the program may overwrite it now
            GANTRY_CO_TRY(status);
            continue;
        }
        const Bytes room = sent.room > 0 ? sent.room : sent.bytes;
        Received received = co_await receive(rank, buffer.part(0, room), 0, 1);
        if (received.status.error_class() == MPI_ERR_TRUNCATE)
            ++sent.truncated;
        else
            GANTRY_CO_TRY(received.status);
        WORLD_CHECK(buffer.holds(key, room));
    }
    co_return success();
}

struct Counted {
    int reads = 0, chunks = 0;
};
Counted count(World& world) {
    Counted counted;
    for (const transport::fake::TraceRow& row : world.shared_memory().trace()) {
        counted.reads += row.kind == transport::fake::kRead ? 1 : 0;
        counted.chunks += row.kind == p2p::wire::kChunk ? 1 : 0;
    }
    return counted;
}

Counted run(World& world, Sent& sent) {
    const Ending ending = world.run([&sent](Rank& rank) { return sends(rank, sent); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something was left over, seed " << world.options().seed;
    return count(world);
}
Counted run(World& world) {
    Sent sent;
    return run(world, sent);
}

TEST(SingleCopy, IsReadInPiecesWhereThatWasMeasuredFaster) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        World world(options_of(seed));
        measured(world, kSlow, kFast);
        const Counted counted = run(world);
        EXPECT_EQ(counted.reads, 3 * 4) << "pieces of 256 KiB";
        EXPECT_EQ(counted.chunks, 0);
    }
}

TEST(SingleCopy, GoesThroughSlotsWhereTheseWereMeasuredFaster) {
    World world(options_of());
    measured(world, kFast, kSlow);
    const Counted counted = run(world);
    EXPECT_EQ(counted.reads, 0);
    EXPECT_EQ(counted.chunks, 3 * 16);
}

TEST(SingleCopy, IsMeasuredByTheFirstMessages) {
    World world(options_of());
    Sent sent{.bytes = 256 * kKiB, .messages = 12};
    const Counted counted = run(world, sent);
    const plan::HostRates rates =
        world.rank(0).transfer.host_reads.to(world.rank(0).transfer.endpoints.to(1)).rates;
    EXPECT_GT(rates.slots, 0);
    EXPECT_NEAR(rates.read_latency(), 500, 0.05 * 500);
    EXPECT_NEAR(rates.read_bytes_per_second(), kFast, 0.1 * kFast);
    EXPECT_EQ(world.shared_memory().host_rates(0), 0u) << "who has received nothing";
    // Eight messages of four pieces through slots; two whose calls are tried, read in pieces of 64 KiB. In
    // this world a copy out of a slot takes no time, so the others go through slots again.
    EXPECT_EQ(counted.reads, 2 * (4 + 4));
    EXPECT_EQ(counted.chunks, (8 + 2) * 4);
}

TEST(SingleCopy, IsNotOfferedWhereItIsNotAllowedOrSwitchedOff) {
    for (const bool allowed : {false, true}) {
        Options options = options_of();
        if (!allowed) options.reads = [](int) { return false; };
        if (allowed) options.mechanisms = "all,-cma";
        World world(options);
        measured(world, kSlow, kFast);
        const Counted counted = run(world);
        EXPECT_EQ(counted.reads, 0);
        EXPECT_EQ(counted.chunks, 3 * 16);
    }
}

// Only the sender could read: its offers are in vain, and it makes one.
TEST(SingleCopy, IsNotOfferedAgainToAPeerThatMayNotRead) {
    Options options = options_of();
    options.reads = [](int rank) { return rank == 0; };
    World world(options);
    measured(world, kSlow, kFast);
    const Counted counted = run(world);
    EXPECT_EQ(counted.reads, 0);
    EXPECT_EQ(counted.chunks, 3 * 16);
    EXPECT_TRUE(world.rank(0).transfer.endpoints.to(1).refuses_reads);
}

TEST(SingleCopy, ARefusalInTheMiddleFallsBackWithoutLoss) {
    for (int piece = 0; piece < 4; ++piece) {
        int asked = 0;
        Options options = options_of(static_cast<std::uint64_t>(piece) + 1);
        options.refuse_read = [&asked, piece](int) { return asked++ == piece; };
        World world(options);
        measured(world, kSlow, kFast);
        const Counted counted = run(world);
        EXPECT_EQ(counted.reads, piece + 1);
        EXPECT_EQ(counted.chunks, 3 * 16);
    }
}

TEST(SingleCopy, SynchronousAndTruncatedMessagesEndAsTheyShould) {
    World world(options_of());
    measured(world, kSlow, kFast);
    Sent sent{.room = 300 * kKiB, .mode = p2p::SendMode::synchronous};
    const Counted counted = run(world, sent);
    EXPECT_EQ(sent.truncated, 3);
    EXPECT_EQ(counted.reads, 3 * 2);
    EXPECT_EQ(counted.chunks, 0);
}

TEST(SingleCopy, ThresholdIsTakenAtItsWord) {
    Options options = options_of();
    options.change_config = [](config::Config& config) {
        config.cma_threshold = 128 * kKiB;
        config.device_pool = 4 * kMiB;
    };
    for (const Bytes bytes : {100 * kKiB, 128 * kKiB}) {
        World world(options);
        Sent sent{.bytes = bytes};
        const Counted counted = run(world, sent);
        EXPECT_EQ(counted.reads, bytes < 128 * kKiB ? 0 : 3);
    }
}

// A step of a collective need not be sent at once; a message of the program's is, within the limit.
TEST(SingleCopy, MessagesThatAreAwaitedAreReadAlsoBelowTheEagerLimit) {
    for (const double slots : {2e9, kFast}) {
        for (const p2p::SendMode mode : {p2p::SendMode::standard, p2p::SendMode::awaited}) {
            World world(options_of());
            measured(world, slots, 20e9);
            Sent sent{.bytes = 16 * kKiB, .mode = mode};
            const Counted counted = run(world, sent);
            EXPECT_EQ(counted.reads,
                      slots < kFast && mode == p2p::SendMode::awaited ? sent.messages : 0);
            EXPECT_EQ(counted.chunks, 0);
        }
    }
}

TEST(SingleCopy, MessagesSentAtOnceAreSamplesOfSlots) {
    World world(options_of());
    Sent sent{.bytes = 16 * kKiB, .messages = 25, .mode = p2p::SendMode::awaited};
    const Counted counted = run(world, sent);
    EXPECT_GT(world.shared_memory().host_rates(1), 0u);
    EXPECT_GT(counted.reads, 0) << "to measure what that costs";
    EXPECT_EQ(counted.chunks, 0);
}

TEST(SingleCopy, WhatIsTooShortToMeasureMeasuresNothing) {
    World world(options_of());
    for (const int rank : {0, 1})
        world.shared_memory().host_rates(rank) = plan::step_of(2e9, plan::kRateUnit);
    Sent sent{.bytes = 8 * kKiB, .messages = 15, .mode = p2p::SendMode::awaited};
    EXPECT_EQ(run(world, sent).reads, 0);
}

TEST(SingleCopy, WhatEndsOnADeviceGoesThroughSlots) {
    World world(options_of());
    measured(world, kSlow, kFast);
    Sent sent{.place = Place::device};
    const Counted counted = run(world, sent);
    EXPECT_EQ(counted.reads, 0);
    EXPECT_GT(counted.chunks, 0);
}

// --- the machine changes in the middle -----------------------------------------------------------

// The clock of messages through slots: read before the first copy out of one and behind the last.
class SlotClock final : public Clock {
  public:
    Nanoseconds now() const override {
        behind_ = !behind_;
        time_ += behind_ ? model::Rate(bytes_per_second).time(bytes) : 1;
        return time_;
    }
    double bytes_per_second = kSlow;
    Bytes bytes = 0;  // of a message

  private:
    mutable Nanoseconds time_ = 1;
    mutable bool behind_ = true;
};

// What copies out of slots and reads do from that message on.
struct Turn {
    int from;
    double slots, reads;
};
struct Followed {
    Bytes bytes = 256 * kKiB;
    int messages = 0;
    std::vector<Turn> turns;
    SlotClock clock = {};
    std::vector<bool> read = {};  // of each message: its receiver read it
};

Task<Status> follow(Rank& rank, Followed& followed) {
    Bytebuffer buffer(rank, Place::host, followed.bytes);
    followed.clock.bytes = followed.bytes;
    if (rank.number == 1) rank.transfer.host_reads.time_slots_by(followed.clock);
    for (int i = 0; i < followed.messages; ++i) {
        if (rank.number == 0) {
            buffer.fill(static_cast<std::uint64_t>(i));
            Status sent = co_await send(rank, buffer.whole(), 1, 1, p2p::SendMode::synchronous);
            GANTRY_CO_TRY(sent);
            continue;
        }
        for (const Turn& turn : followed.turns) {
            if (turn.from != i) continue;
            followed.clock.bytes_per_second = turn.slots;
            rank.world.shared_memory().set_read_rate(model::Rate(turn.reads));
        }
        const int reads_before = count(rank.world).reads;
        Received received = co_await receive(rank, buffer.whole(), 0, 1);
        GANTRY_CO_TRY(received.status);
        WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(i), followed.bytes));
        followed.read.push_back(count(rank.world).reads > reads_before);
    }
    co_return success();
}

void run(World& world, Followed& followed) {
    const Ending ending = world.run([&followed](Rank& rank) { return follow(rank, followed); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
}

// Messages from `from` up to `end` that went another way than `read` says.
int others(const Followed& followed, int from, int end, bool read) {
    int count = 0;
    for (int i = from; i < end; ++i)
        count += followed.read[static_cast<std::size_t>(i)] != read ? 1 : 0;
    return count;
}

constexpr int kOften = static_cast<int>(plan::Looks::kMessagesBetween);
constexpr int kSamples = static_cast<int>(transfer::HostReads::kSamples);
// Messages of that size until so many pieces have been read.
int messages_of_samples(Bytes bytes, Bytes piece) {
    const Bytes each = std::max<Bytes>(bytes / piece, 1);
    return static_cast<int>(divide_up(kSamples, each));
}

TEST(SingleCopy, LeavesAWayThatHasBecomeSlowAfterEightCopies) {
    for (const bool reads_first : {false, true}) {
        for (const Bytes bytes : {64 * kKiB, 256 * kKiB, kMiB}) {
            World world(options_of());
            const Turn before = reads_first ? Turn{0, 4e9, 20e9} : Turn{0, 20e9, 4e9};
            const Turn after = reads_first ? Turn{300, 4e9, 1e9} : Turn{300, 1e9, 4e9};
            Followed followed{.bytes = bytes, .messages = 450, .turns = {before, after}};
            run(world, followed);
            const int start = kSamples + messages_of_samples(bytes, 64 * kKiB);
            const int adapt = reads_first ? messages_of_samples(bytes, 256 * kKiB) : kSamples;
            EXPECT_LE(others(followed, start, 300, reads_first), 300 / kOften);
            EXPECT_LE(others(followed, 300 + adapt, 450, !reads_first), 150 / kOften + 1)
                << "nothing but looks, " << bytes << " bytes";
        }
    }
}

TEST(SingleCopy, NoticesByALookThatTheOtherWayHasBecomeFast) {
    for (const bool reads_first : {false, true}) {
        World world(options_of());
        const Turn before = reads_first ? Turn{0, 5e9, 10e9} : Turn{0, 10e9, 5e9};
        const Turn after = reads_first ? Turn{200, 40e9, 10e9} : Turn{200, 10e9, 40e9};
        Followed followed{.messages = 500, .turns = {before, after}};
        run(world, followed);
        // A read is measured by eight pieces: two looks at messages of 256 KiB in pieces of 64.
        EXPECT_LE(others(followed, 200, 500, !reads_first), 2 * kOften) << reads_first;
        EXPECT_LE(others(followed, 200 + 2 * kOften, 500, !reads_first), 300 / kOften + 1);
    }
}

TEST(SingleCopy, DoesNotFlutterWhereRatesDifferByLittle) {
    World world(options_of());
    Followed followed{.messages = 600, .turns = {{0, 10e9, 9.5e9}}};
    for (int i = 20; i < 600; i += 10)
        followed.turns.push_back({i, i % 20 == 0 ? 12e9 : 8.5e9, i % 30 == 0 ? 11e9 : 8.8e9});
    run(world, followed);
    int changes = 0;
    for (std::size_t i = 21; i < followed.read.size(); ++i)
        changes += followed.read[i] != followed.read[i - 1] ? 1 : 0;
    EXPECT_LE(changes, 2 * (600 / kOften + 1)) << "each look is there and back";
}

TEST(SingleCopy, ExplanationsSayWhatIsALookAndWhatTheUsualWayTakes) {
    World world(options_of());
    Followed followed{.messages = 300, .turns = {{0, 4e9, 20e9}, {100, 4e9, 10e9}}};
    run(world, followed);
    const std::string text = world.rank(0).explain.text(0);
    EXPECT_NE(text.find("now and then, to see what this way takes by now"), std::string::npos)
        << text;
    EXPECT_NE(text.find("one copy, by the receiver"), std::string::npos) << text;
}

// --- a peer dies --------------------------------------------------------------------------------

struct Ended {
    Status of[2];
    bool right = false;
};

Task<Status> one(Rank& rank, Ended& ended) {
    Bytebuffer buffer(rank, Place::host, 4 * kMiB);
    if (rank.number == 0) {
        buffer.fill(7);
        ended.of[0] = co_await send(rank, buffer.whole(), 1, 1);
    } else {
        Received received = co_await receive(rank, buffer.whole(), 0, 1);
        ended.of[1] = received.status;
        ended.right = buffer.holds(7, 4 * kMiB);
    }
    co_return success();
}

TEST(SingleCopy, DeathOfEitherEndAtAnyMomentIsAnError) {
    for (const int victim : {0, 1}) {
        int failed = 0;
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            World world(options_of(seed));
            measured(world, kSlow, kFast);
            world.kill_at(static_cast<Nanoseconds>(world.timeline().random(150 * kMicrosecond)),
                          victim);
            Ended ended;
            const Ending ending = world.run([&ended](Rank& rank) { return one(rank, ended); });
            ASSERT_TRUE(ending.good()) << "rank " << victim << " dies; " << ending;
            const Status& survivor = ended.of[1 - victim];
            if (!survivor.ok()) ++failed;
            EXPECT_TRUE(victim == 1 || !survivor.ok() || ended.right) << "seed " << seed;
            ASSERT_TRUE(world.settle()) << "seed " << seed << ": something was left over";
        }
        EXPECT_GT(failed, 5) << "the deaths are to fall into the message";
    }
}

}  // namespace
}  // namespace gantry::world

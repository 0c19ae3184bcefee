// SPDX-License-Identifier: BSD-3-Clause
//
// What goes wrong is an error that ends in time, never a hang and never wrong data: a peer that
// dies at any moment of a message, copies that fail or stop, refused IPC, pins and pools. Direct copies are asked for (GANTRY_IPC_THRESHOLD) and counted: left
// to the planner, first messages are staged.
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <fmt/format.h>

namespace gantry::world {
namespace {

using model::Operation;

struct Way {
    const char* name;
    const char* machine;
    int ranks_per_node;
    Bytes exposes_from = 0;
    int gpus = 0;  // above 0: by direct copies, among so many GPUs
};
constexpr Way kWays[] = {{"Network", "c2050-qdr", 1},
                         {"NetworkThatExposes", "c2050-qdr", 1, 64 * kKiB},
                         {"SharedMemory", "c2050-qdr", 2},
                         {"SharedGpu", "h200", 2}};
constexpr Way kDirectWays[] = {{"OneGpuDirectly", "h200", 2, 0, 1},
                               {"TwoGpusDirectly", "h200", 2, 0, 2}};

struct Pair {
    const char* name;
    Place source, sink;
};
constexpr Pair kPairs[] = {{"DeviceToDevice", Place::device, Place::device},
                           {"DeviceToHost", Place::device, Place::host},
                           {"HostToDevice", Place::host, Place::device},
                           {"HostToHost", Place::host, Place::host}};
// Page-locked memory takes part in direct copies.
constexpr Pair kDirectPairs[] = {{"DeviceToDevice", Place::device, Place::device},
                                 {"DeviceToPinned", Place::device, Place::pinned},
                                 {"PinnedToDevice", Place::pinned, Place::device}};

// Copies of both ranks.
struct Copies {
    std::uint64_t direct = 0, staged = 0, opens = 0, refused_opens = 0;
};

// A copy between device and host memory is direct if the rank whose buffer is in host memory makes
// it: what is staged is copied by the other one, into or out of its slots.
Copies copies_of(World& world, Pair pair) {
    Copies copies;
    for (const int rank : {0, 1}) {
        const device::fake::Counts& counts = world.rank(rank).device.counts();
        const Place mine = rank == 0 ? pair.source : pair.sink;
        std::uint64_t inside = 0;
        for (const Operation operation : {Operation::d2d, Operation::peer, Operation::peer_get})
            inside += counts.copies[static_cast<int>(operation)];
        const std::uint64_t others = counts.all_copies() - counts.host_copies - inside;
        copies.direct += inside + (mine == Place::pinned ? others : 0);
        copies.staged += mine == Place::pinned ? 0 : others;
        copies.opens += counts.opens;
        copies.refused_opens += counts.refused_opens;
    }
    return copies;
}

// One message of rank 0 to rank 1; each side's status is noted and is not the program's. `before`
// it others open the mapping, and are not counted.
struct OneMessage {
    Pair pair = kPairs[0];
    Bytes bytes = 4 * kMiB;
    std::uint64_t key = 1;
    int tag = 1;
    int gpus = 1;
    int before = 0;
    Status ended[2] = {};
    bool right = false;
    Place place(const Rank& rank) const { return rank.number == 0 ? pair.source : pair.sink; }
    int gpu(const Rank& rank) const { return rank.number % gpus; }
};

Task<Status> one_message(Rank& rank, OneMessage& message, Bytebuffer& buffer) {
    buffer.clear();
    if (rank.number == 0) {
        buffer.fill(message.key);
        message.ended[0] = co_await send(rank, buffer.whole(), 1, message.tag);
    } else {
        Received received = co_await receive(rank, buffer.whole(), 0, message.tag);
        message.ended[1] = received.status;
        message.right = buffer.holds(message.key, message.bytes);
    }
    co_return success();
}

Task<Status> messages_before(Rank& rank, OneMessage message, Bytebuffer& buffer) {
    for (int i = 0; i < message.before; ++i) {
        Status sent = co_await one_message(rank, message, buffer);
        GANTRY_CO_TRY(sent);
        WORLD_CHECK(message.ended[rank.number].ok());
        WORLD_CHECK(rank.number == 0 || message.right);
    }
    if (message.before == 0) co_return success();
    Status met = co_await meet(rank, 9);
    GANTRY_CO_TRY(met);
    rank.device.reset_counts();
    co_return success();
}

class Faults : public testing::TestWithParam<std::tuple<Pair, Way>> {
  protected:
    Pair pair() const { return std::get<0>(GetParam()); }
    Way way() const { return std::get<1>(GetParam()); }
    bool direct() const { return way().gpus > 0; }
    OneMessage message(std::uint64_t key = 1) const {
        return {.pair = pair(),
                .key = key,
                .gpus = std::max(way().gpus, 1),
                .before = direct() ? 2 : 0};
    }
    Options options(std::uint64_t seed) const {
        Options options{.machine = way().machine,
                        .ranks = 2,
                        .ranks_per_node = way().ranks_per_node,
                        .seed = seed,
                        .jitter = static_cast<Nanoseconds>(seed % 3) * 5 * kMicrosecond,
                        .exposes_from = way().exposes_from};
        if (direct())
            options.change_config = [](config::Config& config) {
                config.ipc_threshold = 1;
                config.device_pool = 4 * kMiB;  // a world with a dead rank keeps its memory
                config.host_pool = kMiB;
            };
        return options;
    }
};

// --- a peer dies --------------------------------------------------------------------------------

// `ready` is called by each rank before the message.
using Ready = std::function<void(Rank&)>;

Task<Status> one_message_and_then_another(Rank& rank, OneMessage& message, Ready ready) {
    Bytebuffer buffer(rank, message.place(rank), message.bytes, message.gpu(rank));
    Status before = co_await messages_before(rank, message, buffer);
    GANTRY_CO_TRY(before);
    ready(rank);
    Status first = co_await one_message(rank, message, buffer);
    GANTRY_CO_TRY(first);
    Status slept =
        co_await rank.sleep(rank.executor, 20 * kMillisecond);  // by now its death is known
    GANTRY_CO_TRY(slept);
    Bytebuffer small(rank, Place::host, 8);
    Status sent = co_await send(rank, small.whole(), 1 - rank.number, 2);
    WORLD_CHECK(!sent.ok());
    Received received = co_await receive(rank, small.whole(), 1 - rank.number, 2);
    WORLD_CHECK(!received.status.ok());
    co_return success();
}

// A direct copy is short: this one lasts longer, so that many die in the middle of it.
constexpr Nanoseconds kLongCopy = 500 * kMicrosecond;
constexpr int kDeaths = repetitions(40);

TEST_P(Faults, DeathOfAPeerAtAnyMomentEndsTheMessage) {
    for (const int victim : {0, 1}) {
        int in_a_copy = 0;
        for (std::uint64_t seed = 1; seed <= kDeaths; ++seed) {
            World world(options(seed));
            const auto when = static_cast<Nanoseconds>(
                world.timeline().random(direct() ? 2 * kLongCopy : 3 * kMillisecond));
            const auto die = [&world, &in_a_copy, victim] {
                if (world.rank(0).device.in_flight() + world.rank(1).device.in_flight() > 0)
                    ++in_a_copy;
                world.kill(victim);
            };
            OneMessage its = message();
            const Ready ready = [this, &die, when](Rank& rank) {
                if (direct()) rank.device.faults.hang_copy = 1;
                rank.device.faults.hang_for = kLongCopy;
                if (rank.number == 0) rank.world.timeline().at(rank.processor.now() + when, die);
            };
            const Ending ending = world.run([&its, &ready](Rank& rank) {
                return one_message_and_then_another(rank, its, ready);
            });
            ASSERT_TRUE(ending.good()) << "rank " << victim << " dies; " << ending;
            ASSERT_TRUE(world.settle())
                << "rank " << victim << " dies, seed " << seed << ": something was left over";
            if (victim == 0 && its.ended[1].ok()) {
                ASSERT_TRUE(its.right) << "seed " << seed;
            }
            const Copies copies = copies_of(world, pair());
            if (direct())
                ASSERT_EQ(copies.staged, 0u) << "seed " << seed;
            else
                ASSERT_EQ(copies.direct, 0u) << "seed " << seed;
        }
        if (direct()) {
            EXPECT_GE(in_a_copy, kDeaths / 4) << "rank " << victim << " hardly died in a copy";
        }
    }
}

// A receive from any source ends when one of the others has died, and, once that is acknowledged, when the last one has.
Task<Status> receive_from_anybody(Rank& rank, std::vector<Nanoseconds>& ended) {
    if (rank.number != 0) {
        Status slept = co_await rank.sleep(rank.executor, kSecond);
        co_return slept;
    }
    Bytebuffer buffer(rank, Place::host, 8), later(rank, Place::host, 8);
    Received first = co_await receive(rank, buffer.whole(), MPI_ANY_SOURCE, MPI_ANY_TAG);
    WORLD_CHECK(!first.status.ok());
    ended.push_back(rank.processor.now());
    WORLD_CHECK(!rank.messenger.nothing_comes(rank.all, MPI_ANY_SOURCE).ok());
    rank.all.acknowledged = static_cast<std::uint32_t>(rank.messenger.losses().size());
    rank.messenger.acknowledged(rank.all);
    WORLD_CHECK(rank.messenger.nothing_comes(rank.all, MPI_ANY_SOURCE).ok());
    Received second = co_await receive(rank, later.whole(), MPI_ANY_SOURCE, MPI_ANY_TAG);
    WORLD_CHECK(!second.status.ok());
    ended.push_back(rank.processor.now());
    co_return success();
}

TEST(FaultsOfAnybody, ADeathEndsAReceiveFromAnySourceThatHasNotAcknowledgedIt) {
    for (const int ranks_per_node : {1, 3}) {
        World world({.ranks = 3, .ranks_per_node = ranks_per_node});
        world.kill_at(5 * kMillisecond, 1);
        world.kill_at(30 * kMillisecond, 2);
        std::vector<Nanoseconds> ended;
        const Ending ending =
            world.run([&ended](Rank& rank) { return receive_from_anybody(rank, ended); });
        EXPECT_TRUE(ending.good()) << ending;
        ASSERT_EQ(ended.size(), 2u);
        EXPECT_GE(ended[0], 5 * kMillisecond);
        EXPECT_LT(ended[0], 30 * kMillisecond);
        EXPECT_GE(ended[1], 30 * kMillisecond);
        EXPECT_TRUE(world.settle()) << "something was left over";
    }
}

// The pools hold an eighth of the message: the sender waits for slots that the dead one had.
TEST_P(Faults, DeathOfAPeerThatHasAllTheSlotsEndsTheMessage) {
    for (const int victim : {0, 1}) {
        for (std::uint64_t seed = 1; seed <= repetitions(10); ++seed) {
            Options small = options(seed);
            small.change_config = [](config::Config& config) {
                config.ipc = false;
                config.device_pool = config.host_pool = kMiB;
            };
            World world(std::move(small));
            world.kill_at(static_cast<Nanoseconds>(world.timeline().random(2 * kMillisecond)),
                          victim);
            OneMessage its{.pair = pair(), .bytes = 8 * kMiB};
            const Ending ending = world.run([&its](Rank& rank) {
                return one_message_and_then_another(rank, its, [](Rank&) {});
            });
            ASSERT_TRUE(ending.good()) << "rank " << victim << " dies; " << ending;
            ASSERT_TRUE(world.settle())
                << "rank " << victim << " dies, seed " << seed << ": something was left over";
        }
    }
}

// --- copies fail --------------------------------------------------------------------------------

// Messages before and after show that the pair still works.
Task<Status> between_two_good_ones(Rank& rank, OneMessage* messages) {
    Bytebuffer buffer(rank, messages[0].place(rank), messages[0].bytes, messages[0].gpu(rank));
    for (int i = 0; i < 3; ++i) {
        Status status = co_await one_message(rank, messages[i], buffer);
        GANTRY_CO_TRY(status);
        Status met = co_await meet(rank, 10 + i);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

constexpr int kEveryCopy = 0;

Task<Status> with_a_failing_copy(Rank& rank, OneMessage* messages, int failing_rank, int which) {
    Bytebuffer buffer(rank, messages[0].place(rank), messages[0].bytes, messages[0].gpu(rank));
    Status before = co_await messages_before(rank, messages[0], buffer);
    GANTRY_CO_TRY(before);
    Status first = co_await one_message(rank, messages[0], buffer);
    GANTRY_CO_TRY(first);
    Status met = co_await meet(rank, 10);
    GANTRY_CO_TRY(met);
    if (rank.number == failing_rank) {
        rank.device.faults.fail_copy = which;
        rank.device.faults.fail_every_copy = which == kEveryCopy;
    }
    Status second = co_await one_message(rank, messages[1], buffer);
    GANTRY_CO_TRY(second);
    met = co_await meet(rank, 11);
    GANTRY_CO_TRY(met);
    rank.device.faults.fail_copy = 0;
    rank.device.faults.fail_every_copy = false;
    Status third = co_await one_message(rank, messages[2], buffer);
    co_return third;
}

TEST_P(Faults, FailedCopyIsAnErrorAndThePairGoesOn) {
    std::uint64_t failures = 0;
    for (const int failing : {0, 1}) {
        for (const int which : {1, 2, 5, 30, kEveryCopy}) {
            const auto seed = static_cast<std::uint64_t>(which);
            World world(options(seed));
            OneMessage messages[3] = {message(0), message(1), message(2)};
            const Ending ending = world.run([&messages, failing, which](Rank& rank) {
                return with_a_failing_copy(rank, messages, failing, which);
            });
            ASSERT_TRUE(ending.good())
                << "copy " << which << " of rank " << failing << "; " << ending;
            const std::string what =
                fmt::format("copy {} of rank {}: sender \"{}\", receiver \"{}\"", which, failing,
                            messages[1].ended[0].text(), messages[1].ended[1].text());
            EXPECT_TRUE(messages[0].right && messages[2].right) << what;
            EXPECT_TRUE(messages[0].ended[0].ok() && messages[2].ended[0].ok()) << what;
            EXPECT_EQ(messages[1].ended[1].ok(), messages[1].right) << what;
            // The receiver may fail after the sender's buffer has been read whole; never the other
            // way round.
            if (!messages[1].ended[0].ok()) {
                EXPECT_FALSE(messages[1].ended[1].ok()) << what;
            }
            ASSERT_TRUE(world.settle()) << what << ": something was left over";
            if (!messages[1].ended[1].ok()) ++failures;
            const Copies copies = copies_of(world, pair());
            if (direct()) {
                EXPECT_EQ(copies.direct, 3u) << what;
                EXPECT_EQ(copies.staged, 0u) << what;
            }
        }
    }
    // The first and every one, of the one rank that copies.
    if (direct()) {
        EXPECT_EQ(failures, 2u);
    }
}

// --- copies stop --------------------------------------------------------------------------------

// A copy of the second message stands still for a while, and host messages go on meanwhile.
struct Stopped {
    OneMessage messages[3];
    Nanoseconds begun = 0, others_done = 0, ended = 0;
    int copies = 0;  // that stopped
};
constexpr Nanoseconds kStop = 20 * kMillisecond;

Task<Status> small_messages(Rank& rank, int count) {
    Bytebuffer small(rank, Place::host, 64);
    for (int i = 0; i < count; ++i) {
        if (rank.number == 0) {
            small.fill(static_cast<std::uint64_t>(i));
            Status sent = co_await send(rank, small.whole(), 1, 50);
            GANTRY_CO_TRY(sent);
        }
        Received received = co_await receive(rank, small.whole(), 1 - rank.number, 50);
        GANTRY_CO_TRY(received.status);
        WORLD_CHECK(small.holds(static_cast<std::uint64_t>(i), 64));
        if (rank.number == 1) {
            Status sent = co_await send(rank, small.whole(), 0, 50);
            GANTRY_CO_TRY(sent);
        }
    }
    co_return success();
}

Task<Status> with_a_copy_that_stops(Rank& rank, Stopped& test) {
    OneMessage& second = test.messages[1];
    Bytebuffer buffer(rank, second.place(rank), second.bytes, second.gpu(rank));
    Status before = co_await messages_before(rank, second, buffer);
    GANTRY_CO_TRY(before);
    Status first = co_await one_message(rank, test.messages[0], buffer);
    GANTRY_CO_TRY(first);
    Status met = co_await meet(rank, 10);
    GANTRY_CO_TRY(met);
    buffer.clear();
    rank.device.faults.hang_copy = 1;
    rank.device.faults.hang_for = kStop;
    if (rank.number == 0) buffer.fill(second.key);
    test.begun = rank.processor.now();
    Result<p2p::Request*> started =
        rank.number == 0
            ? rank.messenger.isend(rank.all, buffer.whole(), 1, 1, p2p::SendMode::synchronous)
            : rank.messenger.ireceive(rank.all, buffer.whole(), 0, 1);
    Status others = co_await small_messages(rank, 10);
    GANTRY_CO_TRY(others);
    test.others_done = rank.processor.now();
    Received ended = co_await finish(rank.executor, rank, std::move(started));
    GANTRY_CO_TRY(ended.status);
    test.ended = std::max(test.ended, rank.processor.now());
    if (rank.device.faults.hang_copy == 0) ++test.copies;
    rank.device.faults.hang_copy = 0;
    if (rank.number == 1) WORLD_CHECK(buffer.holds(second.key, second.bytes));
    Status third = co_await one_message(rank, test.messages[2], buffer);
    co_return third;
}

TEST_P(Faults, ACopyThatStopsAndGoesOnHoldsOnlyItsMessageUp) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        World world(options(seed));
        Stopped test{.messages = {message(0), message(1), message(2)}};
        const Ending ending =
            world.run([&test](Rank& rank) { return with_a_copy_that_stops(rank, test); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "seed " << seed << ": something was left over";
        EXPECT_TRUE(test.messages[0].right && test.messages[2].right) << "seed " << seed;
        if (direct()) {
            EXPECT_EQ(test.copies, 1) << "seed " << seed;
            EXPECT_EQ(copies_of(world, pair()).direct, 3u) << "seed " << seed;
            EXPECT_EQ(copies_of(world, pair()).staged, 0u) << "seed " << seed;
        }
        if (test.copies == 0) continue;
        EXPECT_GE(test.ended - test.begun, kStop) << "seed " << seed;
        EXPECT_LT(test.others_done - test.begun, kStop) << "seed " << seed;
    }
}

// --- refusals -----------------------------------------------------------------------------------

Copies expect_right(Options options, const OneMessage& one,
                    const std::function<void(Rank&)>& break_something) {
    World world(std::move(options));
    OneMessage messages[3] = {one, one, one};
    const Ending ending = world.run([&messages, &break_something](Rank& rank) {
        break_something(rank);
        return between_two_good_ones(rank, messages);
    });
    EXPECT_TRUE(ending.good()) << ending;
    for (const OneMessage& message : messages) {
        EXPECT_TRUE(message.ended[0].ok()) << message.ended[0].text();
        EXPECT_TRUE(message.ended[1].ok()) << message.ended[1].text();
        EXPECT_TRUE(message.right);
    }
    EXPECT_TRUE(world.settle()) << "something was left over";
    return copies_of(world, one.pair);
}

TEST_P(Faults, NothingIsRefusedWhenNothingIsBroken) {
    const Copies copies = expect_right(options(1), message(), [](Rank&) {});
    EXPECT_EQ(copies.direct, direct() ? 3u : 0u);
    EXPECT_EQ(copies.opens, direct() ? 1u : 0u);
    EXPECT_EQ(copies.refused_opens, 0u);
}

TEST_P(Faults, RefusedExportIsStaged) {
    const Copies copies = expect_right(
        options(1), message(), [](Rank& rank) { rank.device.faults.refuse_ipc_export = true; });
    EXPECT_EQ(copies.opens + copies.direct, 0u);
}

TEST_P(Faults, RefusedOpeningIsStaged) {
    const Copies copies = expect_right(
        options(1), message(), [](Rank& rank) { rank.device.faults.refuse_ipc_open = true; });
    EXPECT_EQ(copies.refused_opens > 0, direct());
    EXPECT_EQ(copies.opens + copies.direct, 0u);
}

TEST_P(Faults, RefusedPinIsSlowerAndRight) {
    expect_right(options(1), message(), [](Rank& rank) { rank.device.faults.refuse_pin = true; });
}

TEST_P(Faults, NodeWithoutSharedMemoryGivesAnErrorOrAnotherPath) {
    Options without = options(1);
    without.refuse_pools = true;
    World world(std::move(without));
    OneMessage messages[3] = {message(), message(), message()};
    const Ending ending =
        world.run([&messages](Rank& rank) { return between_two_good_ones(rank, messages); });
    ASSERT_TRUE(ending.good()) << ending;
    for (const OneMessage& message : messages) {
        EXPECT_EQ(message.ended[1].ok(), message.right);
        if (!message.ended[1].ok()) {
            EXPECT_EQ(message.ended[1].error_class(), MPI_ERR_NO_MEM) << message.ended[1].text();
        }
    }
    ASSERT_TRUE(world.settle()) << "something was left over";
}

std::string pair_and_way(const testing::TestParamInfo<std::tuple<Pair, Way>>& each) {
    return fmt::format("{}Over{}", std::get<0>(each.param).name, std::get<1>(each.param).name);
}

INSTANTIATE_TEST_SUITE_P(AllPairs, Faults,
                         testing::Combine(testing::ValuesIn(kPairs), testing::ValuesIn(kWays)),
                         pair_and_way);
INSTANTIATE_TEST_SUITE_P(DirectPairs, Faults,
                         testing::Combine(testing::ValuesIn(kDirectPairs),
                                          testing::ValuesIn(kDirectWays)),
                         pair_and_way);

}  // namespace
}  // namespace gantry::world

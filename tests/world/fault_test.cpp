// SPDX-License-Identifier: BSD-3-Clause
//
// What goes wrong is an error that ends in time, never a hang and never wrong data: a peer that
// dies at any moment of a message, copies that fail, refused IPC, pins and pools, pools too small
// for what is under way.
#include "world/harness/programs.hpp"

#include <fmt/format.h>

namespace gantry::world {
namespace {

struct Way {
    const char* name;
    const char* machine;
    int ranks_per_node;
    Bytes lends_from = 0;
};
constexpr Way kWays[] = {{"Network", "c2050-qdr", 1},
                         {"NetworkThatLends", "c2050-qdr", 1, 64 * kKiB},
                         {"SharedMemory", "c2050-qdr", 2},
                         {"SharedGpu", "h200", 2}};

struct Pair {
    const char* name;
    Place source, sink;
};
constexpr Pair kPairs[] = {{"DeviceToDevice", Place::device, Place::device},
                           {"DeviceToHost", Place::device, Place::host},
                           {"HostToDevice", Place::host, Place::device},
                           {"HostToHost", Place::host, Place::host}};

// One message of rank 0 to rank 1; each side's status is noted and is not the program's.
struct OneMessage {
    Pair pair = kPairs[0];
    Bytes bytes = 4 * kMiB;
    std::uint64_t key = 1;
    int tag = 1;
    Status ended[2] = {};
    bool right = false;
};

Task<Status> one_message(Rank& rank, OneMessage& message) {
    const Place place = rank.number == 0 ? message.pair.source : message.pair.sink;
    Bytebuffer buffer(rank, place, message.bytes);
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

class Faults : public testing::TestWithParam<std::tuple<Pair, Way>> {
  protected:
    Pair pair() const { return std::get<0>(GetParam()); }
    Way way() const { return std::get<1>(GetParam()); }
    Options options(std::uint64_t seed) const {
        return {.machine = way().machine,
                .ranks = 2,
                .ranks_per_node = way().ranks_per_node,
                .seed = seed,
                .jitter = static_cast<Nanoseconds>(seed % 3) * 5 * kMicrosecond,
                .lends_from = way().lends_from};
    }
};

// --- a peer dies --------------------------------------------------------------------------------

Task<Status> one_message_and_then_another(Rank& rank, OneMessage& message) {
    Status first = co_await one_message(rank, message);
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

TEST_P(Faults, DeathOfAPeerAtAnyMomentEndsTheMessage) {
    for (const int victim : {0, 1}) {
        for (std::uint64_t seed = 1; seed <= 40; ++seed) {
            World world(options(seed));
            world.kill_at(static_cast<Nanoseconds>(world.timeline().random(3 * kMillisecond)),
                          victim);
            OneMessage message{.pair = pair()};
            const Ending ending = world.run(
                [&message](Rank& rank) { return one_message_and_then_another(rank, message); });
            ASSERT_TRUE(ending.good()) << "rank " << victim << " dies; " << ending;
            ASSERT_TRUE(world.settle())
                << "rank " << victim << " dies, seed " << seed << ": something was left over";
            if (victim == 0 && message.ended[1].ok()) {
                ASSERT_TRUE(message.right) << "seed " << seed;
            }
        }
    }
}

// Receives from any source end when the last of the others has died, and no sooner.
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
    Received second = co_await receive(rank, later.whole(), MPI_ANY_SOURCE, MPI_ANY_TAG);
    WORLD_CHECK(!second.status.ok());
    co_return success();
}

TEST(FaultsOfAnybody, TheLastDeathEndsAReceiveFromAnySource) {
    for (const int ranks_per_node : {1, 3}) {
        World world({.ranks = 3, .ranks_per_node = ranks_per_node});
        world.kill_at(5 * kMillisecond, 1);
        world.kill_at(30 * kMillisecond, 2);
        std::vector<Nanoseconds> ended;
        const Ending ending =
            world.run([&ended](Rank& rank) { return receive_from_anybody(rank, ended); });
        EXPECT_TRUE(ending.good()) << ending;
        ASSERT_EQ(ended.size(), 1u);
        EXPECT_GE(ended[0], 30 * kMillisecond);
        EXPECT_TRUE(world.settle()) << "something was left over";
    }
}

// The pools hold an eighth of the message: the sender waits for slots that the dead one had.
TEST_P(Faults, DeathOfAPeerThatHasAllTheSlotsEndsTheMessage) {
    for (const int victim : {0, 1}) {
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            Options small = options(seed);
            small.change_config = [](config::Config& config) {
                config.ipc = false;
                config.device_pool = config.host_pool = kMiB;
            };
            World world(std::move(small));
            world.kill_at(static_cast<Nanoseconds>(world.timeline().random(2 * kMillisecond)),
                          victim);
            OneMessage message{.pair = pair(), .bytes = 8 * kMiB};
            const Ending ending = world.run(
                [&message](Rank& rank) { return one_message_and_then_another(rank, message); });
            ASSERT_TRUE(ending.good()) << "rank " << victim << " dies; " << ending;
            ASSERT_TRUE(world.settle())
                << "rank " << victim << " dies, seed " << seed << ": something was left over";
        }
    }
}

// --- copies fail --------------------------------------------------------------------------------

// Messages before and after show that the pair still works.
Task<Status> between_two_good_ones(Rank& rank, OneMessage* messages) {
    for (int i = 0; i < 3; ++i) {
        Status status = co_await one_message(rank, messages[i]);
        GANTRY_CO_TRY(status);
        Status met = co_await meet(rank, 10 + i);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

constexpr int kEveryCopy = 0;

Task<Status> with_a_failing_copy(Rank& rank, OneMessage* messages, int failing_rank, int which) {
    Status first = co_await one_message(rank, messages[0]);
    GANTRY_CO_TRY(first);
    Status met = co_await meet(rank, 10);
    GANTRY_CO_TRY(met);
    if (rank.number == failing_rank) {
        rank.device.faults.fail_copy = which;
        rank.device.faults.fail_every_copy = which == kEveryCopy;
    }
    Status second = co_await one_message(rank, messages[1]);
    GANTRY_CO_TRY(second);
    met = co_await meet(rank, 11);
    GANTRY_CO_TRY(met);
    rank.device.faults.fail_copy = 0;
    rank.device.faults.fail_every_copy = false;
    Status third = co_await one_message(rank, messages[2]);
    co_return third;
}

TEST_P(Faults, FailedCopyIsAnErrorAndThePairGoesOn) {
    for (const int failing : {0, 1}) {
        for (const int which : {1, 2, 5, 30, kEveryCopy}) {
            const auto seed = static_cast<std::uint64_t>(which);
            World world(options(seed));
            OneMessage messages[3];
            for (int i = 0; i < 3; ++i) {
                messages[i].pair = pair();
                messages[i].key = static_cast<std::uint64_t>(i);
            }
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
        }
    }
}

// --- refusals -----------------------------------------------------------------------------------

void expect_right(Options options, Pair pair, const std::function<void(Rank&)>& break_something) {
    World world(std::move(options));
    OneMessage messages[3];
    for (OneMessage& message : messages)
        message.pair = pair;
    const Ending ending = world.run([&messages, &break_something](Rank& rank) {
        break_something(rank);
        return between_two_good_ones(rank, messages);
    });
    ASSERT_TRUE(ending.good()) << ending;
    for (const OneMessage& message : messages) {
        EXPECT_TRUE(message.ended[0].ok()) << message.ended[0].text();
        EXPECT_TRUE(message.ended[1].ok()) << message.ended[1].text();
        EXPECT_TRUE(message.right);
    }
    ASSERT_TRUE(world.settle()) << "something was left over";
}

TEST_P(Faults, RefusedExportIsStaged) {
    expect_right(options(1), pair(),
                 [](Rank& rank) { rank.device.faults.refuse_ipc_export = true; });
}

TEST_P(Faults, RefusedOpeningIsStaged) {
    expect_right(options(1), pair(), [](Rank& rank) { rank.device.faults.refuse_ipc_open = true; });
}

TEST_P(Faults, RefusedPinIsSlowerAndRight) {
    expect_right(options(1), pair(), [](Rank& rank) { rank.device.faults.refuse_pin = true; });
}

TEST_P(Faults, NodeWithoutSharedMemoryGivesAnErrorOrAnotherPath) {
    Options without = options(1);
    without.refuse_pools = true;
    World world(std::move(without));
    OneMessage messages[3];
    for (OneMessage& message : messages)
        message.pair = pair();
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

INSTANTIATE_TEST_SUITE_P(AllPairs, Faults,
                         testing::Combine(testing::ValuesIn(kPairs), testing::ValuesIn(kWays)),
                         [](const auto& each) {
                             return fmt::format("{}Over{}", std::get<0>(each.param).name,
                                                std::get<1>(each.param).name);
                         });

// --- small pools --------------------------------------------------------------------------------

// Everybody sends to everybody, both ways at once, several messages each.
Task<Status> everybody_to_everybody(Rank& rank, Place place, Bytes bytes) {
    constexpr int kEach = 3;
    std::vector<std::unique_ptr<Bytebuffer>> in, out;
    std::vector<Result<p2p::Request*>> requests;
    for (int i = 0; i < kEach; ++i) {
        for (int other = 0; other < rank.all.size(); ++other) {
            if (other == rank.number) continue;
            in.push_back(std::make_unique<Bytebuffer>(rank, place, bytes));
            requests.push_back(rank.messenger.ireceive(rank.all, in.back()->whole(), other, i));
            out.push_back(std::make_unique<Bytebuffer>(rank, place, bytes));
            out.back()->fill(static_cast<std::uint64_t>(rank.number * 10 + i));
            requests.push_back(rank.messenger.isend(rank.all, out.back()->whole(), other, i,
                                                    p2p::SendMode::standard));
        }
    }
    for (Result<p2p::Request*>& request : requests) {
        Received ended = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(ended.status);
    }
    std::size_t at = 0;
    for (int i = 0; i < kEach; ++i)
        for (int other = 0; other < rank.all.size(); ++other)
            if (other != rank.number)
                WORLD_CHECK(in[at++]->holds(static_cast<std::uint64_t>(other * 10 + i), bytes));
    co_return success();
}

void expect_no_deadlock(Place place, int ranks, int ranks_per_node) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        World world({.ranks = ranks,
                     .ranks_per_node = ranks_per_node,
                     .seed = seed,
                     .jitter = 10 * kMicrosecond,
                     .change_config = [](config::Config& config) {
                         config.device_pool =
                             512 * kKiB;  // eight units for a dozen messages of twice that
                         config.host_pool = 256 * kKiB;
                         config.eager_budget = 64 * kKiB;
                     }});
        const Ending ending = world.run(
            [place](Rank& rank) { return everybody_to_everybody(rank, place, kMiB + 77); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "something was left over, seed " << seed;
    }
}

TEST(SmallPools, DeviceMessagesOfManyNodesWaitAndDoNotDeadlock) {
    expect_no_deadlock(Place::device, 4, 1);
}
TEST(SmallPools, DeviceMessagesOfOneNodeWaitAndDoNotDeadlock) {
    expect_no_deadlock(Place::device, 4, 4);
}
TEST(SmallPools, DeviceMessagesOfTwoNodesWaitAndDoNotDeadlock) {
    expect_no_deadlock(Place::device, 6, 3);
}
TEST(SmallPools, HostMessagesOfOneNodeWaitAndDoNotDeadlock) {
    expect_no_deadlock(Place::host, 4, 4);
}

Task<Status> flood(Rank& rank) {
    constexpr int kMessages = 400;
    constexpr Bytes kBytes = 4000;
    if (rank.number == 1) {
        Status slept = co_await rank.sleep(rank.executor, 50 * kMillisecond);
        GANTRY_CO_TRY(slept);
    }
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    std::vector<Result<p2p::Request*>> requests;
    for (int i = 0; i < kMessages; ++i) {
        buffers.push_back(std::make_unique<Bytebuffer>(rank, Place::host, kBytes));
        if (rank.number == 0) {
            buffers.back()->fill(static_cast<std::uint64_t>(i));
            requests.push_back(rank.messenger.isend(rank.all, buffers.back()->whole(), 1, 1,
                                                    p2p::SendMode::standard));
        } else {
            requests.push_back(rank.messenger.ireceive(rank.all, buffers.back()->whole(), 0, 1));
        }
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
        Received ended = co_await finish(rank.executor, rank, std::move(requests[i]));
        GANTRY_CO_TRY(ended.status);
        WORLD_CHECK(rank.number == 0 || buffers[i]->holds(i, kBytes));
    }
    co_return success();
}

TEST(EagerBudget, BoundsWhatAPeerHoldsUnreceived) {
    World world({.ranks = 2, .seed = 1, .change_config = [](config::Config& config) {
                     config.eager_budget = 64 * kKiB;
                 }});
    const Ending ending = world.run(flood);
    ASSERT_TRUE(ending.good()) << ending;
    // By the time rank 1 began to receive, no more than the budget had come eagerly.
    Bytes before = 0;
    for (const transport::fake::TraceRow& row : world.network().trace())
        if (row.time < 50 * kMillisecond && row.to == 1) before += row.payload_bytes;
    EXPECT_LE(before, 64 * kKiB);
    EXPECT_GT(before, 32 * kKiB);
}

// --- freed and reused memory --------------------------------------------------------------------

Task<Status> fresh_allocation_each_time(Rank& rank) {
    for (std::uint64_t round = 0; round < 6; ++round) {
        // A new allocation, likely at the address of the last one: a stale mapping would bring old
        // bytes.
        Bytebuffer buffer(rank, Place::device, kMiB);
        if (rank.number == 0) {
            buffer.fill(round);
            Status sent = co_await send(rank, buffer.whole(), 1, 1);
            GANTRY_CO_TRY(sent);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 0, 1);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(round, kMiB));
        }
    }
    co_return success();
}

TEST(FreedMemory, SharedAndFreedAndAllocatedAgainBringsTheNewBytes) {
    World world({.machine = "h200", .ranks = 2, .ranks_per_node = 2, .seed = 1});
    const Ending ending = world.run(fresh_allocation_each_time);
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
}

}  // namespace
}  // namespace gantry::world

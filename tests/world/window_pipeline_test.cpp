// SPDX-License-Identifier: BSD-3-Clause
//
// Large puts and gets between nodes whose network does not reach device memory: by rendezvous, and through
// the slots of both sides in a pipeline.
#include "world/harness/window_parts.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace gantry::world {
namespace {

using rma::Verb;

Bytes copied(World& world, int rank, model::Operation way) {
    return world.rank(rank).device.counts().bytes[static_cast<int>(way)];
}

// Each byte is copied once out of the device that holds it, once into a slot of the peer, and once into
// the device that gets it.
TEST(WindowPipeline, EachByteIsCopiedOnceOnEachSide) {
    constexpr Bytes kBytes = 4 * kMiB + 8;
    World world({});
    const Ending ending = world.run(
        [](Rank& rank) { return put_and_get(rank, kBytes, Place::device, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    for (const int rank : {0, 1}) {
        EXPECT_EQ(copied(world, rank, model::Operation::d2h), kBytes) << rank;
        EXPECT_EQ(copied(world, rank, model::Operation::h2d), kBytes) << rank;
    }
    const transport::fake::Fabric& network = world.network();
    EXPECT_EQ(network.puts().payload_bytes, 2 * kBytes);
    EXPECT_EQ(network.count(rma::wire::kRendezvousPut).messages, 1u);
    EXPECT_EQ(network.count(rma::wire::kPutEnded).messages, 1u);
    EXPECT_EQ(network.count(rma::wire::kRendezvousGet).messages, 1u);
    EXPECT_EQ(network.count(rma::wire::kAnswerFollows).messages, 1u);
    EXPECT_EQ(network.count(rma::wire::kPut).messages, 0u);
    EXPECT_EQ(network.count(rma::wire::kGet).messages, 0u);
    EXPECT_EQ(network.count(rma::wire::kAnswer).messages, 0u);
}

// A device at either end is enough; a put into host memory that the network reaches needs no target.
TEST(WindowPipeline, OneEndInDeviceMemoryIsEnough) {
    constexpr Bytes kBytes = kMiB;
    for (const Place place : {Place::host, Place::device}) {
        const Place other = place == Place::host ? Place::device : Place::host;
        World world({});
        const Ending ending = world.run(
            [place, other](Rank& rank) { return put_and_get(rank, kBytes, place, other); });
        ASSERT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle());
        const unsigned puts = other == Place::device ? 1 : 0;
        EXPECT_EQ(world.network().count(rma::wire::kRendezvousPut).messages, puts);
        EXPECT_EQ(world.network().count(rma::wire::kRendezvousGet).messages, 1u);
        EXPECT_EQ(world.network().count(rma::wire::kGet).messages, 0u);
    }
}

TEST(WindowPipeline, WhereCardsReachDeviceMemoryNothingIsAnnounced) {
    World world({.machine = "h200", .change_machine = [](model::Machine& machine) {
                     machine.network.device_memory = true;
                 }});
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, kMiB, Place::device, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.network().count(rma::wire::kRendezvousPut).messages, 0u);
    EXPECT_EQ(world.network().count(rma::wire::kRendezvousGet).messages, 0u);
}

TEST(WindowPipeline, TheUserCanHaveMessagesInstead) {
    World world({.change_config = [](config::Config& config) { config.window_rendezvous = kGiB; }});
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, kMiB, Place::device, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.network().count(rma::wire::kRendezvousPut).messages, 0u);
    EXPECT_EQ(world.network().count(rma::wire::kPut).payload_bytes, kMiB);
}

// Behind a put and a get that have opened what is needed.
Task<Status> time_one(Rank& rank, Bytes bytes, Place place, Place of_window, FlushedTimes* times) {
    Bytebuffer memory(rank, of_window, bytes), origin(rank, place, bytes);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        for (int round = 0; round < 2; ++round) {
            status = co_await time_flushed(rank, *window, origin, 1, times);
            GANTRY_CO_TRY(status);
        }
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

FlushedTimes times_of(const char* machine, Bytes bytes, Place place, Place of_window, Bytes from) {
    FlushedTimes times;
    World world({.machine = machine, .change_config = [from](config::Config& config) {
                     config.window_rendezvous = from;
                 }});
    const Ending ending =
        world.run([&](Rank& rank) { return time_one(rank, bytes, place, of_window, &times); });
    EXPECT_TRUE(ending.good()) << ending;
    return times;
}

// At the published rates and at those of an H200: by rendezvous, by message, or what the planner chooses,
// which is right to a tenth.
TEST(WindowPipeline, TheWayThatTakesLessTimeIsTaken) {
    for (const char* machine : {"c2050-qdr", "h200"})
        for (const auto& [place, of_window] :
             {std::pair(Place::device, Place::device), std::pair(Place::device, Place::host),
              std::pair(Place::host, Place::device)})
            for (Bytes bytes = 4 * kKiB; bytes <= kMiB; bytes *= 2) {
                const FlushedTimes announced = times_of(machine, bytes, place, of_window, 1),
                                   by_message = times_of(machine, bytes, place, of_window, kGiB),
                                   chosen = times_of(machine, bytes, place, of_window, 0);
                const auto most = [](Nanoseconds one, Nanoseconds other) {
                    return static_cast<Nanoseconds>(1.1 *
                                                    static_cast<double>(std::min(one, other)));
                };
                EXPECT_LE(chosen.put, most(announced.put, by_message.put))
                    << machine << ", " << bytes << " bytes, " << name(place) << " to "
                    << name(of_window) << ": " << announced.put << " and " << by_message.put;
                EXPECT_LE(chosen.get, most(announced.get, by_message.get))
                    << machine << ", " << bytes << " bytes, " << name(of_window) << " to "
                    << name(place) << ": " << announced.get << " and " << by_message.get;
            }
}

TEST(WindowPipeline, ExplainSaysHowSuchOperationsTravel) {
    World world({});
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, kMiB, Place::device, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    const std::string text = world.rank(0).explain.text(0);
    EXPECT_NE(text.find("go by rendezvous from "), std::string::npos) << text;
    EXPECT_NE(text.find("pipeline"), std::string::npos) << text;
}

// The buffer of a put is the program's when flush_local returns; at the target it may not be yet.
Task<Status> end_here_first(Rank& rank, Nanoseconds* here, Nanoseconds* there) {
    constexpr Bytes kBytes = 4 * kMiB;
    Bytebuffer memory(rank, Place::device, kBytes), origin(rank, Place::device, kBytes);
    origin.fill(3);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::exclusive);
        GANTRY_CO_TRY(status);
        GANTRY_CO_TRY(begin(rank, *window, origin, {.bytes = kBytes}));
        status = co_await window->flush_local(rank.executor, 1);
        GANTRY_CO_TRY(status);
        *here = rank.processor.now();
        origin.fill(4);  // too late to be put
        status = co_await window->flush(rank.executor, 1);
        GANTRY_CO_TRY(status);
        *there = rank.processor.now();
        WORLD_CHECK(rank.world.rank(1).device.pending() == false);
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) WORLD_CHECK(memory.holds(3, kBytes));
    co_return success();
}

TEST(WindowPipeline, AnEndHereIsNoEndThere) {
    Nanoseconds here = 0, there = 0;
    World world({});
    const Ending ending =
        world.run([&](Rank& rank) { return end_here_first(rank, &here, &there); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_LT(here, there);
}

// --- failures

// Ranks 0 and 2 work at rank 1. Whoever hears of a failure goes on, so that nobody waits in vain.
Task<Status> round_at_one(Rank& rank, rma::Window& window, int round, Bytebuffer& origin,
                          Bytebuffer& again) {
    const Bytes part = origin.bytes() / 2, mine = rank.number == 2 ? part : 0;
    const bool works = rank.number != 1, passive = round % 2 == 0;
    Status failed, status;
    const auto note = [&failed](Status of) {
        if (failed.ok()) failed = std::move(of);
    };
    origin.fill(static_cast<std::uint64_t>(10 * round + rank.number));
    if (passive && works) {
        status = co_await window.lock(rank.executor, 1, rma::Lock::shared);
        const bool locked = status.ok();
        note(std::move(status));
        if (locked) {
            note(begin(rank, window, origin, {.offset = mine, .bytes = part}));
            status = co_await window.flush(rank.executor, 1);
            note(std::move(status));
            note(begin(rank, window, again, {.verb = Verb::get, .offset = mine, .bytes = part}));
            status = co_await window.unlock(rank.executor, 1);
            note(std::move(status));
        }
    }
    for (const Verb verb : {Verb::put, Verb::get}) {
        status = co_await window.fence(rank.executor, 0);
        note(std::move(status));
        if (!works || passive) continue;
        Bytebuffer& buffer = verb == Verb::put ? origin : again;
        note(begin(rank, window, buffer, {.verb = verb, .offset = mine, .bytes = part}));
    }
    status = co_await window.fence(rank.executor, MPI_MODE_NOSUCCEED);
    note(std::move(status));
    if (works && failed.ok())
        WORLD_CHECK(std::memcmp(rank.device.behind(again.address() + mine, part),
                                rank.device.behind(origin.address() + mine, part), part) == 0);
    co_return failed;
}

Task<Status> two_at_one(Rank& rank) {
    constexpr Bytes kAll = 1200 * kKiB;
    Bytebuffer memory(rank, Place::device, kAll), origin(rank, Place::device, kAll),
        again(rank, Place::device, kAll);
    std::unique_ptr<rma::Window> window;
    Status failed = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(failed);
    for (int round = 0; round < 4; ++round) {
        Status status = co_await round_at_one(rank, *window, round, origin, again);
        if (failed.ok()) failed = std::move(status);
    }
    Status closed = co_await window->close(rank.executor);
    co_return failed.ok() ? closed : failed;
}

Options three(std::uint64_t seed) {
    Options options{.ranks = 3, .seed = seed};
    options.change_machine = [](model::Machine& machine) { machine.network.rails = 2; };
    return options;
}

TEST(WindowPipeline, RailsThatFailAtAnyStepLoseNothing) {
    std::uint64_t repeats = 0;
    Nanoseconds whole = 0;
    for (int step = -1; step < 30; ++step) {
        World world(three(static_cast<std::uint64_t>(step + 2)));
        if (step >= 0)
            world.timeline().at(whole * step / 30, [&] {
                world.network().fail_rail(step % 3, step / 3 % 2, 500 * kMicrosecond);
            });
        const Ending ending = world.run([](Rank& rank) { return two_at_one(rank); });
        ASSERT_TRUE(ending.good()) << "step " << step << ": " << ending;
        EXPECT_TRUE(world.settle()) << "step " << step;
        if (step < 0) whole = ending.time;
        for (int each = 0; each < 3; ++each)
            repeats += world.rank(each).transfer.rails.repeats();
    }
    EXPECT_GT(repeats, 0u);
}

// Whoever it is: those who worked with it hear of it, and nobody waits for ever.
TEST(WindowPipeline, ARankThatDiesAtAnyStepIsAnErrorOfTheOthers) {
    for (const int victim : {1, 0}) {
        Nanoseconds whole = 0;
        for (int step = -1; step < 20; ++step) {
            World world(three(static_cast<std::uint64_t>(step + 2)));
            // The first steps are those in which the window is made.
            if (step >= 0) world.kill_at(whole * (step + 2) / 24, victim);
            const Ending ending = world.run([](Rank& rank) { return two_at_one(rank); });
            EXPECT_FALSE(ending.stuck) << "step " << step << ": " << ending;
            if (step < 0)
                whole = ending.time;
            else
                EXPECT_FALSE(ending.of(1 - victim).ok()) << "step " << step << ": " << ending;
        }
    }
}

// A copy that fails on either side is an error of the origin's next synchronisation, and of nobody else.
Task<Status> meet_a_failing_copy(Rank& rank, int failing) {
    constexpr Bytes kBytes = kMiB;
    Bytebuffer memory(rank, Place::device, kBytes), origin(rank, Place::device, kBytes);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        for (const Verb verb : {Verb::put, Verb::get}) {
            rank.world.rank(failing).device.faults.fail_copy = 1;
            GANTRY_CO_TRY(begin(rank, *window, origin, {.verb = verb, .bytes = kBytes}));
            Status failed = co_await window->flush(rank.executor, 1);
            WORLD_CHECK(!failed.ok());
            origin.fill(5);
            GANTRY_CO_TRY(begin(rank, *window, origin, {.bytes = kBytes}));
            status = co_await window->flush(rank.executor, 1);
            GANTRY_CO_TRY(status);
        }
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) WORLD_CHECK(memory.holds(5, kBytes));
    co_return success();
}

TEST(WindowPipeline, ACopyThatFailsIsAnErrorAndHoldsNobodyUp) {
    for (const int failing : {0, 1}) {
        World world({});
        const Ending ending =
            world.run([failing](Rank& rank) { return meet_a_failing_copy(rank, failing); });
        ASSERT_TRUE(ending.good()) << failing << ": " << ending;
        EXPECT_TRUE(world.settle()) << failing;
    }
}

}  // namespace
}  // namespace gantry::world

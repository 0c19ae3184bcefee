// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of ranks on other nodes: large puts and gets by RDMA between the memories, small
// puts that travel together, and rails that fail while they do.
#include "world/harness/window_parts.hpp"

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace gantry::world {
namespace {

using rma::Verb;

Options with(int rails, std::uint64_t seed = 1) {
    Options options;
    options.seed = seed;
    options.change_machine = [rails](model::Machine& machine) { machine.network.rails = rails; };
    return options;
}

TEST(WindowWays, LargePutsAndGetsGoStraight) {
    constexpr Bytes kBytes = 4 * kMiB + 24;
    for (const int rails : {1, 2, 4}) {
        World world(with(rails));
        const Ending ending =
            world.run([](Rank& rank) { return put_and_get(rank, kBytes, Place::host); });
        ASSERT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle());
        const transport::fake::Fabric& network = world.network();
        EXPECT_EQ(network.count(rma::wire::kPut).messages, 0u);
        EXPECT_EQ(network.count(rma::wire::kGet).messages, 0u);
        EXPECT_EQ(network.count(rma::wire::kAnswer).payload_bytes, 0u);
        // A card reads by itself; several rails carry their parts of a put of the target.
        const bool by_card = rails == 1;
        EXPECT_EQ(network.gets().payload_bytes, by_card ? kBytes : 0);
        EXPECT_EQ(network.puts().payload_bytes, by_card ? kBytes : 2 * kBytes) << rails;
        EXPECT_EQ(network.puts().messages, by_card ? 1 : 2u * static_cast<unsigned>(rails));
        EXPECT_EQ(network.count(rma::wire::kGetInto).messages, by_card ? 0u : 1u);
    }
}

TEST(WindowWays, GetsOfAnySizeTakeNoCallOfTheTarget) {
    constexpr Bytes kBytes = 512;
    World world(with(1));
    const Ending ending = world.run(
        [](Rank& rank) { return put_and_get(rank, kBytes, Place::host, Place::host, 8); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.network().gets().messages, kBytes / 8);
    EXPECT_EQ(world.network().count(rma::wire::kGet).messages, 0u);
    EXPECT_EQ(world.network().count(rma::wire::kGetInto).messages, 0u);
    EXPECT_EQ(world.network().count(rma::wire::kAnswer).messages, 0u);
    EXPECT_TRUE(world.settle());
    EXPECT_EQ(world.network().end(0).stats().registrations.registered, 1u)
        << "its own part of the window, and no small memory that is read into";
}

TEST(WindowWays, APutOfDeviceMemoryIsCopiedToHostMemoryFirst) {
    World world(with(1));
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, 5 * kMiB + 8, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.network().puts().payload_bytes, 2 * (5 * kMiB + 8));
    EXPECT_EQ(world.network().count(rma::wire::kRendezvousPut).messages, 0u);
    EXPECT_EQ(world.network().count(rma::wire::kRendezvousGet).messages, 1u)
        << "its sink is no key's";
}

Bytes staged(World& world) {
    Bytes bytes = 0;
    for (int rank = 0; rank < 2; ++rank)
        bytes += world.rank(rank).device.counts().bytes[static_cast<int>(model::Operation::d2h)] +
                 world.rank(rank).device.counts().bytes[static_cast<int>(model::Operation::h2d)];
    return bytes;
}

// What a card writes to device memory shows only after its owner has settled it.
TEST(WindowWays, CardsReachDeviceWindowsAndOrigins) {
    constexpr Bytes kBytes = 3 * kMiB + 8;
    constexpr Place kPlaces[] = {Place::host, Place::device};
    for (const Place origin : kPlaces)
        for (const Place of_window : kPlaces)
            for (const int rails : {1, 2}) {
                World world({.machine = "h200", .change_machine = [rails](model::Machine& machine) {
                                 machine.network.device_memory = true;
                                 machine.network.rails = rails;
                             }});
                const Ending ending = world.run(
                    [=](Rank& rank) { return put_and_get(rank, kBytes, origin, of_window); });
                ASSERT_TRUE(ending.good()) << ending;
                EXPECT_TRUE(world.settle());
                EXPECT_EQ(world.network().gets().payload_bytes, rails == 1 ? kBytes : 0);
                EXPECT_EQ(world.network().puts().payload_bytes, (rails == 1 ? 1 : 2) * kBytes);
                EXPECT_EQ(staged(world), 0u);
            }
}

TEST(WindowWays, DeviceMemoryThatIsRefusedGoesThroughHostMemory) {
    Options options{.machine = "h200"};
    options.change_machine = [](model::Machine& machine) { machine.network.device_memory = true; };
    options.refuse_registration = [](int, const transport::Extent& extent) {
        return extent.place == transport::MemoryPlace::device;
    };
    World world(options);
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, 3 * kMiB, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.network().puts().payload_bytes, 2 * 3 * kMiB);
    EXPECT_EQ(world.network().count(rma::wire::kGet).messages, 0u);
}

TEST(WindowWays, SmallPutsTravelTogether) {
    constexpr Bytes kBytes = 64 * 8;
    World world(with(1));
    const Ending ending = world.run(
        [](Rank& rank) { return put_and_get(rank, kBytes, Place::host, Place::host, 8); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.network().count(rma::wire::kPuts).messages, 1u);
    EXPECT_EQ(world.network().count(rma::wire::kPut).messages, 0u);
}

TEST(WindowWays, WithoutBatchesAndRegistrationsAllGoesByMessage) {
    for (const bool refused : {false, true}) {
        Options options = with(1);
        if (refused)
            options.refuse_registration = [](int, const transport::Extent&) { return true; };
        options.change_config = [refused](config::Config& config) {
            config.window_batch = 0;
            if (!refused) config.window_rdma = 0;
        };
        World world(options);
        const Ending ending =
            world.run([](Rank& rank) { return put_and_get(rank, kMiB, Place::host); });
        ASSERT_TRUE(ending.good()) << ending;
        EXPECT_EQ(world.network().puts().messages, 0u);
        EXPECT_EQ(world.network().count(rma::wire::kPut).payload_bytes, kMiB);
    }
}

// Published: two adapters give at least 1.95 of the bandwidth of one.
TEST(WindowWays, TwoRailsCarryAlmostTwiceAsMuch) {
    Nanoseconds times[2];
    for (const int rails : {1, 2}) {
        World world(with(rails));
        const Ending ending =
            world.run([](Rank& rank) { return put_and_get(rank, 16 * kMiB, Place::host); });
        ASSERT_TRUE(ending.good()) << ending;
        times[rails - 1] = ending.time;
    }
    EXPECT_GE(static_cast<double>(times[0]) / static_cast<double>(times[1]), 1.95);
}

TEST(WindowWays, ExplainSaysHowOperationsTravelAndWhatRailsDid) {
    World world(with(2));
    world.timeline().at(0, [&] { world.network().fail_rail(0, 1, 500 * kMicrosecond); });
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, 8 * kMiB, Place::host); });
    ASSERT_TRUE(ending.good()) << ending;
    const std::string text = world.rank(0).explain.text(0);
    EXPECT_NE(text.find("operations at 1 rank go by RDMA from 32 KiB on, over 2 rails"),
              std::string::npos)
        << text;
    const std::string rails =
        transfer::RailScheduler::sentence(world.rank(0).transfer.endpoints.to(1), "ib0,ib1");
    EXPECT_NE(rails.find("rails to rank 1: ib0 (home): 100 % of the bytes of puts at "),
              std::string::npos)
        << rails;
    EXPECT_NE(rails.find("; ib1: 0 % of the bytes of puts, failures: 1, down; parts of puts "
                         "that went again: 1"),
              std::string::npos)
        << rails;
}

constexpr Bytes kPart = 200 * kKiB;
constexpr int kRounds = 6;
constexpr Bytes kSums = 64 * sizeof(std::uint64_t);

// Both ranks put at each other, read that again, and add to numbers of each other, in epochs of both
// kinds.
Task<Status> mix(Rank& rank) {
    const int peer = 1 - rank.number;
    Bytebuffer memory(rank, Place::host, kSums + 2 * kPart),
        origin(rank, Place::host, memory.bytes()), again(rank, Place::host, memory.bytes()),
        ones(rank, Place::host, kSums);
    std::memset(memory.address(), 0, memory.bytes());
    for (Bytes at = 0; at < kSums; at += sizeof(std::uint64_t)) {
        const std::uint64_t one = 1;
        std::memcpy(ones.address() + at, &one, sizeof one);
    }
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    for (int round = 0; round < kRounds; ++round) {
        origin.fill(static_cast<std::uint64_t>(100 * round + rank.number));
        const bool passive = round % 2 == 0;
        if (passive)
            status = co_await window->lock(rank.executor, peer, rma::Lock::shared);
        else
            status = co_await window->fence(rank.executor, 0);
        GANTRY_CO_TRY(status);
        GANTRY_CO_TRY(
            begin(rank, *window, origin, {.target = peer, .offset = kSums, .bytes = kPart}));
        for (Bytes at = kSums + kPart; at < kSums + kPart + 512; at += 8)
            GANTRY_CO_TRY(begin(rank, *window, origin, {.target = peer, .offset = at, .bytes = 8}));
        GANTRY_CO_TRY(begin(rank, *window, origin,
                            {.target = peer, .offset = kSums + kPart + 512, .bytes = kPart - 512}));
        for (int i = 0; i < 3; ++i)
            GANTRY_CO_TRY(
                begin(rank, *window, ones,
                      {.verb = Verb::accumulate, .target = peer, .offset = 0, .bytes = kSums}));
        if (passive) {
            status = co_await window->flush(rank.executor, peer);
            GANTRY_CO_TRY(status);
            GANTRY_CO_TRY(
                begin(rank, *window, again,
                      {.verb = Verb::get, .target = peer, .offset = kSums, .bytes = 2 * kPart}));
            status = co_await window->unlock(rank.executor, peer);
        } else {
            status = co_await window->fence(rank.executor, 0);
            GANTRY_CO_TRY(status);
            GANTRY_CO_TRY(
                begin(rank, *window, again,
                      {.verb = Verb::get, .target = peer, .offset = kSums, .bytes = 2 * kPart}));
            status = co_await window->fence(rank.executor, MPI_MODE_NOSUCCEED);
        }
        GANTRY_CO_TRY(status);
        WORLD_CHECK(std::memcmp(again.address() + kSums, origin.address() + kSums, 2 * kPart) == 0);
        status = co_await meet(rank, 100 + round);
        GANTRY_CO_TRY(status);
    }
    std::uint64_t sum = 0;
    for (Bytes at = 0; at < kSums; at += sizeof sum) {
        std::memcpy(&sum, memory.address() + at, sizeof sum);
        WORLD_CHECK(sum == 3 * kRounds);
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

TEST(WindowWays, RailsThatFailAtAnyStepLoseNothingAndDoubleNothing) {
    constexpr Nanoseconds kNotice = 500 * kMicrosecond;
    std::uint64_t repeats = 0;
    Nanoseconds whole = 0;
    for (int step = -1; step < 40; ++step) {
        World world(with(2, static_cast<std::uint64_t>(step + 2)));
        if (step >= 0)
            world.timeline().at(whole * step / 40, [&] {
                world.network().fail_rail(step % 2, step / 2 % 2, kNotice);
            });
        const Ending ending = world.run([](Rank& rank) { return mix(rank); });
        ASSERT_TRUE(ending.good()) << "step " << step << ": " << ending;
        EXPECT_TRUE(world.settle()) << "step " << step;
        if (step < 0) whole = ending.time;
        for (int each = 0; each < 2; ++each)
            repeats += world.rank(each).transfer.rails.repeats();
    }
    EXPECT_GT(repeats, 0u);
}

TEST(WindowWays, ATargetThatDiesIsAnErrorAtItsOrigin) {
    for (const int rails : {1, 2}) {
        Nanoseconds whole = 0;
        for (int step = -1; step < 20; ++step) {
            World world(with(rails, static_cast<std::uint64_t>(step + 2)));
            if (step >= 0) world.kill_at(whole * (step + 1) / 24, 1);
            const Ending ending = world.run([](Rank& rank) { return mix(rank); });
            EXPECT_FALSE(ending.stuck) << "step " << step << ": " << ending;
            if (step < 0)
                whole = ending.time;
            else
                EXPECT_FALSE(ending.of(0).ok()) << "step " << step << ": " << ending;
        }
    }
}

}  // namespace
}  // namespace gantry::world

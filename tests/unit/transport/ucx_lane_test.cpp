// SPDX-License-Identifier: BSD-3-Clause
//
// Lanes: small messages over TCP by a connection of our own, from when there are many of them.
// Both directions, every size, a full socket, many peers, who leaves, who vanishes, a break.
#include "ucx_world.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace gantry::transport::ucx {
namespace {

class UcxLaneTest : public UcxTest {
  protected:
    // Each sends to the other until both do so by the lane.
    void open_lane() {
        start(2);
        for (const int from : {0, 1}) {
            ASSERT_TRUE(transport(from).send(1 - from, 1, bytes("hello"), {}).ok());
            ASSERT_TRUE(until([&] { return !notebook(1 - from).messages.empty(); }));
        }
        const std::set<int> first = connections();
        ASSERT_TRUE(until([&] {
            for (const int from : {0, 1})
                EXPECT_TRUE(transport(from).send(1 - from, 1, bytes("early"), {}).ok());
            return transport(0).lane_frames() > 0 && transport(1).lane_frames() > 0;
        }));
        settle();
        for (const int rank : {0, 1})
            notebook(rank).messages.clear();
        lane = connections();
        std::erase_if(lane, [&](int descriptor) { return first.contains(descriptor); });
    }
    // Until nothing comes any more.
    void settle() {
        std::size_t before = 0;
        for (int quiet = 0; quiet < 200; ++quiet) {
            turn();
            const std::size_t now = notebook(0).messages.size() + notebook(1).messages.size();
            if (std::exchange(before, now) != now) quiet = 0;
        }
    }
    static std::string pattern(Bytes size, int seed) {
        std::string text(size, ' ');
        std::iota(text.begin(), text.end(), static_cast<char>(seed));
        return text;
    }
    std::set<int> lane;  // its descriptors
};

TEST_F(UcxLaneTest, CarryMessagesInOrderBothWaysOnceThereAreMany) {
    open_lane();
    const std::uint64_t frames = transport(0).lane_frames();
    for (int i = 0; i < 200; ++i) {
        for (const int from : {0, 1})
            ASSERT_TRUE(transport(from).send(1 - from, 7, bytes(std::to_string(i)), {}).ok());
        if (i % 3 == 0) turn();
    }
    ASSERT_TRUE(until(
        [&] { return notebook(0).messages.size() == 200 && notebook(1).messages.size() == 200; }));
    for (std::size_t i = 0; i < 200; ++i)
        for (const int rank : {0, 1})
            EXPECT_EQ(notebook(rank).messages[i].header, std::to_string(i));
    EXPECT_GT(transport(0).lane_frames(), frames);
}

TEST_F(UcxLaneTest, AMessageAloneNeedsNoProgressOfItsSender) {
    open_lane();
    for (const int from : {0, 1}) {
        const std::uint64_t frames = transport(from).lane_frames();
        ASSERT_TRUE(transport(from).send(1 - from, 2, bytes("alone"), {}).ok());
        EXPECT_EQ(transport(from).lane_frames(), frames + 1);
        const SteadyClock clock;
        const Nanoseconds end = clock.now() + 10 * kSecond;
        while (notebook(1 - from).messages.empty() && clock.now() < end)
            transport(1 - from).progress();
        EXPECT_EQ(notebook(1 - from).messages.size(), 1u);
    }
}

// The receiver looks only when all are sent, and they are more than a socket takes; between the
// lane and UCX messages may overtake each other.
TEST_F(UcxLaneTest, CarryEverySizeAndWhatAFullSocketHoldsBack) {
    constexpr int kRounds = 100;
    open_lane();
    const Bytes largest = transport(0).facts(1).eager_max;
    const Bytes sizes[] = {0, 1, 7, 8, 4095, 8000, 8192, 16 * kKiB, largest - 1, largest};
    for (int round = 0; round < kRounds; ++round)
        for (const Bytes size : sizes)
            ASSERT_TRUE(transport(0)
                            .send(1, 3, bytes(fmt::format("{} {}", size, round)),
                                  bytes(pattern(size, round)))
                            .ok());
    const std::size_t all = kRounds * std::size(sizes);
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == all; }));
    std::set<std::string> headers;
    for (const shm::Arrived& message : notebook(1).messages) {
        std::istringstream said(message.header);
        Bytes size = 0;
        int round = 0;
        said >> size >> round;
        EXPECT_TRUE(message.payload == pattern(size, round)) << message.header;
        EXPECT_TRUE(headers.insert(message.header).second) << message.header << " came twice";
    }
    EXPECT_EQ(headers.size(), all);
}

TEST_F(UcxLaneTest, AreLeftToALargeTransferWhileItLasts) {
    open_lane();
    std::vector<std::byte> source(64 * kMiB, std::byte{1}), sink(64 * kMiB);
    const Result<Region> region = transport(1).register_memory(extent(sink));
    ASSERT_TRUE(region.ok());
    Completion done(ranks[0]->executor);
    transport(0).put(1, 0, source.data(), source.size(), {}, transport(1).key(region.value()), 0,
                     done);
    ASSERT_EQ(transport(0).zero_copy_puts(), 1u);
    const std::uint64_t frames = transport(0).lane_frames();
    ASSERT_TRUE(transport(0).send(1, 4, bytes("small"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    EXPECT_FALSE(done.done());
    EXPECT_EQ(transport(0).lane_frames(), frames);
    ASSERT_TRUE(until([&] { return done.done(); }));
    EXPECT_TRUE(done.status().ok()) << done.status().text();
    EXPECT_TRUE(sink == source);
}

// UCX 1.13 does not close a connection before the peer has looked at it, and ends the process when
// its worker goes with the connection half closed.
TEST_F(UcxLaneTest, BringWhatWasSentBeforeAGoodbyeThatCameFirst) {
    config.peer_timeout = 500 * kMillisecond;
    open_lane();
    const std::uint64_t frames = transport(0).lane_frames();
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(transport(0).send(1, 5, bytes(std::to_string(i)), {}).ok());
        transport(0).progress();
    }
    EXPECT_EQ(transport(0).lane_frames(), frames + 100);
    {  // rank 1 looks only when rank 0 is gone
        Task<Status> left = transport(0).close(ranks[0]->executor);
        left.start();
        const SteadyClock clock;
        const Nanoseconds end = clock.now() + 10 * kSecond;
        while (!left.done() && clock.now() < end) {
            transport(0).progress();
            ranks[0]->executor.run_ready();
        }
        ASSERT_TRUE(left.done());
    }
    ranks[0].reset();
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 100; }));
    for (std::size_t i = 0; i < 100; ++i)
        EXPECT_EQ(notebook(1).messages[i].header, std::to_string(i));
    for (int i = 0; i < 1000; ++i)
        turn();
    EXPECT_TRUE(notebook(1).lost.empty());
}

TEST_F(UcxLaneTest, WhoVanishesIsLostOnceAndWhatCameBeforeIsDelivered) {
    for (const int victim : {0, 1}) {
        open_lane();
        const int survivor = 1 - victim;
        ASSERT_TRUE(transport(victim).send(survivor, 6, bytes("last words"), {}).ok());
        ranks[static_cast<std::size_t>(victim)].reset();  // no goodbye
        ASSERT_TRUE(until([&] {
            if (notebook(survivor).lost.empty())
                (void)transport(survivor).send(victim, 6, bytes("anybody?"), {});
            return !notebook(survivor).lost.empty();
        }));
        for (int i = 0; i < 1000; ++i)
            turn();
        ASSERT_EQ(notebook(survivor).lost.size(), 1u);
        EXPECT_EQ(notebook(survivor).lost[0].first, victim);
        ASSERT_EQ(notebook(survivor).messages.size(), 1u);
        EXPECT_EQ(notebook(survivor).messages[0].header, "last words");
        leave(*ranks[static_cast<std::size_t>(survivor)]);
        ranks.clear();
    }
}

// UCX's connection lives on; what the lane carried nobody knows.
TEST_F(UcxLaneTest, ABreakIsTheLossOfThePeer) {
    config.peer_timeout = 500 * kMillisecond;
    for (const int speaker : {0, 1}) {
        open_lane();
        ASSERT_FALSE(lane.empty());
        for (const int descriptor : lane)
            shutdown(descriptor, SHUT_RDWR);
        ASSERT_TRUE(until([&] {
            (void)transport(speaker).send(1 - speaker, 6, bytes("anybody?"), {});
            return !notebook(speaker).lost.empty();
        }));
        EXPECT_EQ(notebook(speaker).lost[0].first, 1 - speaker);
        ranks.clear();
    }
}

// Its ends see that one after the other: nobody looks at a stream that is gone, nor waits for ever.
TEST_F(UcxLaneTest, ABreakLeavesTheLanesToOthersAlone) {
    config.peer_timeout = 500 * kMillisecond;
    start(4);
    const auto round = [&](std::initializer_list<int> peers) {
        for (const int peer : peers) {
            const std::size_t here = notebook(0).messages.size(),
                              there = notebook(peer).messages.size();
            ASSERT_TRUE(transport(0).send(peer, 8, bytes("there"), {}).ok());
            ASSERT_TRUE(transport(peer).send(0, 8, bytes("and back"), {}).ok());
            ASSERT_TRUE(until([&] {
                return notebook(0).messages.size() > here && notebook(peer).messages.size() > there;
            }));
        }
    };
    for (int i = 0; i < 100; ++i)
        round({1, 2});
    round({3});
    const std::set<int> before = connections();
    for (int i = 0; i < 100; ++i)
        round({3});
    for (const int descriptor : connections())  // of the lane to 3
        if (!before.contains(descriptor)) shutdown(descriptor, SHUT_RD);
    for (int i = 0; i < 1000; ++i)
        round({1, 2});
    EXPECT_GT(transport(0).lane_frames(), 1000u);
    ASSERT_TRUE(until([&] { return !notebook(0).lost.empty() && !notebook(3).lost.empty(); }));
    EXPECT_EQ(notebook(0).lost[0].first, 3);
    EXPECT_EQ(notebook(3).lost[0].first, 0);
    round({1, 2});
}

TEST_F(UcxLaneTest, OfManyPeersAreAllWatched) {
    constexpr int kRanks = 5;
    start(kRanks);
    for (int round = 1; round <= 100; ++round) {
        for (int from = 0; from < kRanks; ++from)
            for (int to = 0; to < kRanks; ++to)
                if (to != from) {
                    ASSERT_TRUE(transport(from).send(to, 8, bytes("to all"), {}).ok());
                }
        ASSERT_TRUE(until([&] {
            return std::ranges::all_of(ranks, [&](const auto& rank) {
                return rank->notebook.messages.size() == static_cast<std::size_t>(4 * round);
            });
        })) << round;
    }
    for (int rank = 0; rank < kRanks; ++rank)
        EXPECT_GT(transport(rank).lane_frames(), 0u) << rank;
}

TEST_F(UcxLaneTest, AreForAsManyPeersAsWanted) {
    for (const int wanted : {0, 1}) {
        config.tcp_lanes = wanted;
        start(4);
        const auto speak = [&](int to) {
            const std::uint64_t before = transport(0).lane_frames();
            for (int i = 0; i < 100; ++i) {
                const std::size_t had = notebook(to).messages.size();
                EXPECT_TRUE(transport(0).send(to, 8, bytes("many"), {}).ok());
                EXPECT_TRUE(until([&] { return notebook(to).messages.size() > had; }));
            }
            return transport(0).lane_frames() > before;
        };
        EXPECT_EQ(speak(1), wanted > 0);
        EXPECT_FALSE(speak(2));
        EXPECT_FALSE(speak(3));
        for (const auto& rank : ranks)
            leave(*rank);
        ranks.clear();
    }
}

}  // namespace
}  // namespace gantry::transport::ucx

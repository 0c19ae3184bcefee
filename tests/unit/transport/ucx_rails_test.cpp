// SPDX-License-Identifier: BSD-3-Clause
//
// Two rails to a peer, both over TCP of this machine: one fails while messages and puts are under
// way, all arrive once, and it is taken back.
#include "ucx_world.hpp"

#include "transport/ucx/frame_numbers.hpp"

#include <random>

namespace gantry::transport::ucx {
namespace {

TEST(FrameNumbers, TakesEachFrameOnceInAnyOrder) {
    FrameNumbers numbers;
    EXPECT_TRUE(numbers.take(1));
    EXPECT_FALSE(numbers.take(1));
    EXPECT_TRUE(numbers.take(3));
    EXPECT_EQ(numbers.next(), 2u);
    EXPECT_FALSE(numbers.take(3));
    EXPECT_TRUE(numbers.take(2));
    EXPECT_EQ(numbers.next(), 4u);
    EXPECT_FALSE(numbers.take(2));
}

TEST(FrameNumbers, GoOnBehindTheLastNumber) {
    EXPECT_TRUE(is_before(~0u, 1));
    EXPECT_TRUE(is_before(~0u - 5, ~0u));
    EXPECT_FALSE(is_before(1, 1));
    EXPECT_FALSE(is_before(1, ~0u));
}

class UcxRails : public UcxTest {
  protected:
    void SetUp() override {
        config.rails = "lo,lo";
        UcxTest::SetUp();
    }
    void connect() {
        start(2);
        ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
        ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
        ASSERT_TRUE(transport(1).send(0, 1, bytes("connect"), {}).ok());
        ASSERT_TRUE(until([&] { return notebook(0).messages.size() == 1; }));
    }
    // All messages that ranks send each other, in their order, once.
    void expect_all(std::size_t count) {
        for (int rank : {0, 1}) {
            ASSERT_TRUE(until([&] { return notebook(rank).messages.size() >= 1 + count; }))
                << notebook(rank).messages.size();
            std::set<std::string> seen;
            for (std::size_t i = 1; i < notebook(rank).messages.size(); ++i)
                EXPECT_TRUE(seen.insert(notebook(rank).messages[i].header).second);
            EXPECT_EQ(seen.size(), count);
        }
    }
};

TEST_F(UcxRails, RanksOfANodeShareOutTheirHomes) {
    start(4);
    // The loopback is no card: all rails are alike.
    for (int rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(transport(rank).facts(0).home_rail, rank % 2);
        EXPECT_NE(transport(rank).why_home_rail().find("the system does not say"),
                  std::string::npos)
            << transport(rank).why_home_rail();
    }
}

TEST_F(UcxRails, FramesAreKeptUntilThePeerHasThem) {
    connect();
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(transport(0).send(1, 2, bytes(std::to_string(i)), {}).ok());
    EXPECT_GT(transport(0).kept_frames(1), 0u);
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 101; }));
    EXPECT_TRUE(until([&] { return transport(0).kept_frames(1) == 0; }))
        << "acknowledged without a message back";
}

TEST_F(UcxRails, MessagesOfARailThatFailsArriveOnce) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
        SCOPED_TRACE(seed);
        for (const auto& rank : ranks)
            leave(*rank);
        ranks.clear();
        connect();
        std::mt19937 random(seed);
        constexpr std::size_t kMessages = 400;
        const std::size_t fails_at = random() % kMessages;
        const int who = static_cast<int>(random() % 2);
        for (std::size_t i = 0; i < kMessages; ++i) {
            if (i == fails_at) transport(who).break_rail(1 - who, 0);
            const std::string payload(random() % 3000, 'p');
            for (int rank : {0, 1})
                ASSERT_TRUE(transport(rank)
                                .send(1 - rank, 2, bytes(std::to_string(i)), bytes(payload))
                                .ok());
            if (random() % 4 == 0) turn();
        }
        expect_all(kMessages);
        EXPECT_TRUE(notebook(0).lost.empty());
        EXPECT_TRUE(notebook(1).lost.empty());
        EXPECT_EQ(transport(who).rail_counts().failed, 1u);
    }
}

TEST_F(UcxRails, APutOfARailThatFailsIsReportedWhenNothingOfItCanArriveAnyMore) {
    connect();
    std::vector<std::byte> source(8 * kMiB, std::byte{0x5a}), sink(source.size());
    Result<Region> region = transport(1).register_memory(extent(sink));
    ASSERT_TRUE(region.ok()) << region.status().text();
    const RemoteKey key = transport(1).key(region.value());
    for (int turns : {0, 1, 3, 10, 30}) {
        SCOPED_TRACE(turns);
        ASSERT_TRUE(until([&] { return transport(0).rails_up(1) == 3; }));
        ASSERT_TRUE(until([&] { return transport(1).rails_up(0) == 3; }));
        std::fill(sink.begin(), sink.end(), std::byte{0});
        Completion first(ranks[0]->executor), second(ranks[0]->executor);
        transport(0).put(1, 1, source.data(), source.size(), {}, key, 0, first);
        for (int i = 0; i < turns; ++i)
            turn();
        transport(0).break_rail(1, 1);
        turn();
        EXPECT_EQ(transport(0).rails_up(1), 1u);
        ASSERT_TRUE(until([&] { return first.done(); }));
        // The program may use the memory from now on.
        std::fill(sink.begin(), sink.end(), std::byte{1});
        if (!first.status().ok()) {
            EXPECT_EQ(transport(0).rails_up(1) & 2, 0u) << "whoever repeats it must see why";
        }
        for (int i = 0; i < 50; ++i)
            turn();
        EXPECT_EQ(std::ranges::count(sink, std::byte{1}), std::ssize(sink));
        transport(0).put(1, 0, source.data(), source.size(), {}, key, 0, second);
        ASSERT_TRUE(until([&] { return second.done(); }));
        EXPECT_TRUE(second.status().ok()) << second.status().text();
        EXPECT_EQ(sink, source);
    }
    transport(1).release_memory(*region);
}

TEST_F(UcxRails, ARailThatWorksAgainIsTakenBack) {
    connect();
    std::vector<std::byte> source(kMiB, std::byte{7}), sink(source.size());
    Result<Region> region = transport(1).register_memory(extent(sink));
    ASSERT_TRUE(region.ok()) << region.status().text();
    for (int rail : {1, 0, 1}) {
        transport(0).break_rail(1, rail);
        turn();
        EXPECT_EQ(transport(0).rails_up(1), 3u & ~(1u << rail));
        ASSERT_TRUE(
            until([&] { return transport(0).rails_up(1) == 3 && transport(1).rails_up(0) == 3; }));
        std::fill(sink.begin(), sink.end(), std::byte{0});
        Completion done(ranks[0]->executor);
        transport(0).put(1, rail, source.data(), source.size(), {}, transport(1).key(*region), 0,
                         done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok()) << done.status().text();
        EXPECT_EQ(sink, source);
    }
    EXPECT_EQ(transport(0).rail_counts().returned, 3u);
    transport(1).release_memory(*region);
}

TEST_F(UcxRails, ThatAllFailAreTheLossOfThePeer) {
    config.peer_timeout = 200 * kMillisecond;  // what the other rank waits for a goodbye
    connect();
    std::vector<std::byte> source(kMiB, std::byte{7}), sink(source.size());
    Result<Region> region = transport(1).register_memory(extent(sink));
    ASSERT_TRUE(region.ok()) << region.status().text();
    Completion done(ranks[0]->executor);
    transport(0).put(1, 1, source.data(), source.size(), {}, transport(1).key(*region), 0, done);
    transport(0).break_rail(1, 1);
    transport(0).break_rail(1, 0);
    ASSERT_TRUE(until([&] { return !notebook(0).lost.empty() && !notebook(1).lost.empty(); }));
    ASSERT_TRUE(until([&] { return done.done(); }));
    EXPECT_EQ(done.status().error_class(), MPI_ERR_PROC_ABORTED);
    transport(1).release_memory(*region);
}

// As a card does it, by UCX's emulation over TCP.
TEST_F(UcxRails, APutInPartsIsWholeAtThePeer) {
    config.rail_part = 4 * kKiB;
    connect();
    transport(0).one_sided_everywhere();
    std::vector<std::byte> source(5 * 4 * kKiB + 24), sink(source.size() + 1);
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<std::byte>(i * 7 + i / 256);
    Result<Region> region = transport(1).register_memory(extent(sink));
    ASSERT_TRUE(region.ok()) << region.status().text();
    for (const Bytes bytes : {Bytes{0}, 4 * kKiB, source.size()}) {
        std::ranges::fill(sink, std::byte{});
        Completion done(ranks[0]->executor);
        transport(0).put(1, 1, source.data(), bytes, {}, transport(1).key(*region), 1, done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok()) << done.status().text();
        std::vector<std::byte> expected(sink.size());
        std::copy_n(source.begin(), bytes, expected.begin() + 1);
        EXPECT_EQ(sink, expected) << bytes;
    }
    transport(1).release_memory(*region);
}

}  // namespace
}  // namespace gantry::transport::ucx

// SPDX-License-Identifier: BSD-3-Clause
#include "unit/transport/shm_world.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <thread>

namespace gantry::transport::shm {
namespace {

// Ranks that one thread drives in turn.
struct World {
    explicit World(int size, config::Config config = {}) {
        const auto store = std::make_shared<Store>();
        for (int rank = 0; rank < size; ++rank)
            ranks.push_back(std::make_unique<Rank>(rank, size, store, config));
        for (const auto& rank : ranks)
            EXPECT_TRUE(rank->publish().ok());
        for (const auto& rank : ranks)
            EXPECT_TRUE(rank->open().ok());
    }
    Rank& operator[](int rank) { return *ranks[static_cast<std::size_t>(rank)]; }
    bool progress_until(const std::function<bool()>& condition) {
        return ranks[0]->progress_until([&] {
            for (const auto& rank : ranks)
                rank->transport.progress();
            return condition();
        });
    }
    std::vector<std::unique_ptr<Rank>> ranks;
};

TEST(ShmTransport, ReachesTheRanksOfTheSameNode) {
    const auto store = std::make_shared<Store>();
    Rank first(0, 4, store), third(2, 4, store);
    for (Rank* rank : {&first, &third})
        rank->job.set_nodes({0, 1, 0, 1});
    ASSERT_TRUE(first.publish().ok() && third.publish().ok());
    ASSERT_TRUE(first.open().ok() && third.open().ok());
    EXPECT_FALSE(first.transport.reaches(0));
    EXPECT_FALSE(first.transport.reaches(1));
    EXPECT_TRUE(first.transport.reaches(2));
    EXPECT_TRUE(third.transport.reaches(0));
    EXPECT_TRUE(first.transport.facts(2).shared_memory);
    ASSERT_TRUE(first.send(2, 1, "h", "over").ok());
    ASSERT_TRUE(third.progress_until([&] { return third.notebook.messages.size() == 1; }));
    EXPECT_EQ(third.notebook.messages[0].peer, 0);
}

TEST(ShmTransport, DeliversMessagesOfAllSizesInOrder) {
    World world(2);
    const Bytes largest = world[0].transport.facts(1).eager_max;
    EXPECT_GE(largest, 32 * kKiB) << "the default eager limit must fit into the default ring";
    std::vector<std::string> sent;
    for (Bytes bytes :
         {Bytes{0}, Bytes{1}, Bytes{8}, Bytes{40}, Bytes{56}, Bytes{57}, Bytes{4096}, largest}) {
        sent.push_back(pattern(bytes, bytes));
        ASSERT_TRUE(world[0].send(1, 5, "header", sent.back()).ok());
    }
    ASSERT_TRUE(
        world.progress_until([&] { return world[1].notebook.messages.size() == sent.size(); }));
    for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_EQ(world[1].notebook.messages[i].payload, sent[i]) << i;
        EXPECT_EQ(world[1].notebook.messages[i].header, "header");
    }
}

TEST(ShmTransport, WhatFindsNoRoomWaitsAndKeepsItsPlace) {
    World world(2);
    const std::string payload(8000, 'x');
    for (int i = 0; i < 500; ++i)
        ASSERT_TRUE(world[0].send(1, 1, std::to_string(i), payload).ok());
    ASSERT_TRUE(world.progress_until([&] { return world[1].notebook.messages.size() == 500; }));
    for (int i = 0; i < 500; ++i)
        ASSERT_EQ(world[1].notebook.messages[static_cast<std::size_t>(i)].header,
                  std::to_string(i));
}

TEST(ShmTransport, AHandlerMaySend) {
    World world(2);
    world[1].notebook.on_arrival = [&](int peer, MessageKind, ConstSpan header, ConstSpan) {
        ASSERT_TRUE(world[1].send(peer, 2, Notebook::text(header), "answer").ok());
    };
    for (int i = 0; i < 5000; ++i)
        ASSERT_TRUE(world[0].send(1, 1, std::to_string(i), "").ok());
    ASSERT_TRUE(world.progress_until([&] { return world[0].notebook.messages.size() == 5000; }));
    EXPECT_EQ(world[0].notebook.messages.back().header, "4999");
}

TEST(ShmTransport, AQuietPairIsHeardAmongManyBusyOnes) {
    World world(24);
    for (int from = 1; from < 24; ++from)
        ASSERT_TRUE(world[from].send(0, 1, std::to_string(from), "").ok());
    ASSERT_TRUE(world.progress_until([&] { return world[0].notebook.messages.size() == 23; }));
    for (int round = 0; round < 100; ++round)
        for (int from = 1; from < 12; ++from)
            ASSERT_TRUE(world[from].send(0, 1, "busy", "").ok());
    ASSERT_TRUE(world[23].send(0, 9, "quiet", "").ok());
    ASSERT_TRUE(
        world.progress_until([&] { return world[0].notebook.messages.size() == 23 + 1100 + 1; }));
}

TEST(ShmTransport, PoolsAreReservedByTheirOwnerAndSeenByThePeer) {
    World world(2);
    EXPECT_FALSE(world[1].transport.shared_segment(0)->pool(Pool::host_cells).ok())
        << "nothing is reserved yet";
    const std::span<std::byte> own =
        world[0].transport.shared_segment(0)->pool(Pool::host_cells).value();
    EXPECT_EQ(own.size(), world[0].config.host_pool);
    const std::span<std::byte> seen =
        world[1].transport.shared_segment(0)->pool(Pool::host_cells).value();
    ASSERT_EQ(seen.size(), own.size());
    own[12345] = std::byte{77};
    EXPECT_EQ(seen[12345], std::byte{77});
    const std::span<std::byte> device =
        world[0].transport.shared_segment(0)->pool(Pool::device_slots).value();
    EXPECT_EQ(device.size(), world[0].config.device_pool);
    EXPECT_EQ(world[0].transport.shared_segment(0)->pool(Pool::device_slots).value().data(),
              device.data())
        << "reserved once";
    device.back() = std::byte{5};
    EXPECT_EQ(world[1].transport.shared_segment(0)->pool(Pool::device_slots).value().back(),
              std::byte{5});
}

TEST(ShmTransport, APoolThatTheNodeCannotHoldIsAnErrorAndTheRestGoesOn) {
    config::Config config;
    config.device_pool = Bytes{1} << 44;
    World world(2, config);
    const auto pool = world[0].transport.shared_segment(0)->pool(Pool::device_slots);
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.status().error_class(), MPI_ERR_NO_MEM);
    EXPECT_NE(std::string(pool.status().text()).find("GANTRY_DEVICE_POOL"), std::string::npos)
        << pool.status().text();
    ASSERT_TRUE(world[0].send(1, 1, "still", "works").ok());
    EXPECT_TRUE(world.progress_until([&] { return world[1].notebook.messages.size() == 1; }));
}

TEST(ShmTransport, ClaimWordsAreTheSameForBothSides) {
    World world(2);
    std::uint32_t* own = world[0].transport.shared_segment(0)->claim_words();
    std::uint32_t* seen = world[1].transport.shared_segment(0)->claim_words();
    ASSERT_NE(own, nullptr);
    ASSERT_NE(seen, nullptr);
    std::uint32_t expected = 0;
    EXPECT_TRUE(std::atomic_ref<std::uint32_t>(seen[1023]).compare_exchange_strong(expected, 2));
    EXPECT_EQ(std::atomic_ref<std::uint32_t>(own[1023]).load(), 2u);
}

TEST(ShmTransport, EachRankHasAFlagOfItsPutsToEachOther) {
    World world(3);
    std::set<const Flag*> seen;
    for (int from = 0; from < 3; ++from) {
        const std::span<Flag> all = world[from].transport.shared_segment(from)->flags();
        EXPECT_EQ(all.size(), kSlotFlags + 3);
        for (int to = 0; to < 3; ++to) {
            Flag* const own = world[from].transport.shared_segment(from)->put_flag(to);
            ASSERT_NE(own, nullptr);
            EXPECT_GE(own, all.data() + kSlotFlags) << "it is a slot's";
            EXPECT_LE(own, &all.back());
            EXPECT_TRUE(seen.insert(own).second) << from << " to " << to;
            own->number = static_cast<std::uint32_t>(10 * from + to + 1);
        }
    }
    for (int from = 0; from < 3; ++from)
        for (int to = 0; to < 3; ++to)
            EXPECT_EQ(world[to].transport.shared_segment(from)->put_flag(to)->number,
                      static_cast<std::uint32_t>(10 * from + to + 1))
                << from << " to " << to;
}

TEST(ShmTransport, ARankAloneHasPoolsAndNoPeers) {
    Rank alone(0, 1, std::make_shared<Store>());
    ASSERT_TRUE(alone.publish().ok() && alone.open().ok());
    EXPECT_FALSE(alone.transport.reaches(0));
    EXPECT_EQ(alone.transport.progress(), 0);
    EXPECT_TRUE(alone.transport.shared_segment(0)->pool(Pool::device_slots).ok());
    EXPECT_TRUE(alone.close());
}

TEST(ShmTransport, RingsAreLargeWhereTheyAreFew) {
    const std::pair<int, Bytes> usual[] = {{1, 256 * kKiB},  {2, 256 * kKiB},  {9, 256 * kKiB},
                                           {10, 128 * kKiB}, {17, 128 * kKiB}, {18, 64 * kKiB},
                                           {5000, 64 * kKiB}};
    for (const auto& [members, bytes] : usual)
        EXPECT_EQ(shm::RankLayout(members, 0, 0, 0).ring_bytes(), bytes) << members;
    EXPECT_EQ(shm::RankLayout(2, 8 * kKiB, 0, 0).ring_bytes(), 8 * kKiB) << "as the user says";
}

TEST(ShmTransport, CarriesRandomTrafficBetweenThreads) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    constexpr int kRanks = 3;
    constexpr std::uint32_t kMessages = 4000;
    config::Config config;
    config.ring = 8 * kKiB;
    World world(kRanks, config);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int self = 0; self < kRanks; ++self)
        threads.emplace_back([&, self] {
            Rank& rank = world[self];
            std::mt19937_64 random(seed + static_cast<std::uint64_t>(self));
            std::uint32_t expected[kRanks] = {};
            std::uint32_t received = 0;
            rank.notebook.on_arrival = [&](int peer, MessageKind, ConstSpan header,
                                           ConstSpan payload) {
                std::uint32_t number = 0;
                std::memcpy(&number, header.data(), sizeof number);
                wrong += number != expected[peer]++;
                wrong += Notebook::text(payload) != pattern(payload.size(), number);
                ++received;
            };
            std::uint32_t sent[kRanks] = {};
            const Bytes largest = rank.transport.facts(0).eager_max;
            for (std::uint32_t i = 0; i < kMessages * (kRanks - 1); ++i) {
                int peer = (self + 1 + static_cast<int>(random() % (kRanks - 1))) % kRanks;
                if (sent[peer] == kMessages) peer = 3 - self - peer;
                const std::uint32_t number = sent[peer]++;
                const Bytes bytes = random() % 10 == 0 ? random() % largest : random() % 100;
                const std::string_view header(reinterpret_cast<const char*>(&number),
                                              sizeof number);
                wrong += !rank.send(peer, 1, header, pattern(bytes, number)).ok();
                if (random() % 4 == 0) rank.transport.progress();
            }
            wrong += !rank.progress_until([&] { return received == kMessages * (kRanks - 1); });
            wrong += !rank.close();
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
}

// --- processes -----------------------------------------------------------------------------------

// Runs `body` as rank 1 of two in a process of its own, while the test is rank 0.
class ShmProcesses : public testing::Test {
  protected:
    void start(void (*body)(Rank&)) {
        const auto store = std::make_shared<Store>();
        ours = std::make_unique<Rank>(0, 2, store);
        ASSERT_TRUE(ours->publish().ok());
        child = fork();
        if (child == 0) {
            Rank theirs(1, 2, store);
            if (!theirs.publish().ok() || !theirs.open().ok()) _exit(10);
            body(theirs);
            _exit(0);
        }
        ASSERT_TRUE(ours->open().ok());
    }
    // The exit code, or minus the signal.
    int end_of_child() {
        int how = 0;
        waitpid(child, &how, 0);
        return WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
    }
    std::unique_ptr<Rank> ours;
    pid_t child = -1;
};

TEST_F(ShmProcesses, ExchangeMessagesAndLeaveInOrder) {
    start([](Rank& rank) {
        rank.notebook.on_arrival = [&](int peer, MessageKind kind, ConstSpan header,
                                       ConstSpan payload) {
            if (kind == 9)
                rank.notebook.messages.push_back({});
            else if (!rank.transport.send(peer, kind, header, payload).ok())
                _exit(11);
        };
        if (!rank.progress_until([&] { return !rank.notebook.messages.empty(); })) _exit(12);
        if (!rank.close()) _exit(13);
    });
    for (int i = 0; i < 800; ++i)
        ASSERT_TRUE(
            ours->send(1, 1, std::to_string(i), pattern(static_cast<Bytes>(i) * 7, 3)).ok());
    ASSERT_TRUE(ours->send(1, 9, "", "").ok());
    ASSERT_TRUE(ours->progress_until([&] { return ours->notebook.messages.size() == 800; }));
    for (int i = 0; i < 800; ++i) {
        ASSERT_EQ(ours->notebook.messages[static_cast<std::size_t>(i)].header, std::to_string(i));
        ASSERT_EQ(ours->notebook.messages[static_cast<std::size_t>(i)].payload,
                  pattern(static_cast<Bytes>(i) * 7, 3));
    }
    EXPECT_TRUE(ours->close());
    EXPECT_EQ(end_of_child(), 0);
    EXPECT_TRUE(ours->notebook.lost.empty());
}

TEST_F(ShmProcesses, APeerThatClosesWaitsUntilItsMessagesAreTaken) {
    start([](Rank& rank) {
        if (!rank.send(0, 1, "last", "words").ok()) _exit(11);
        if (!rank.close()) _exit(12);
    });
    siginfo_t how{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOHANG | WNOWAIT), 0);
    EXPECT_EQ(how.si_pid, 0) << "we have not called progress yet";
    ASSERT_TRUE(ours->progress_until([&] { return ours->notebook.messages.size() == 1; }));
    EXPECT_EQ(end_of_child(), 0);
    EXPECT_TRUE(ours->close()) << "it has left, nobody needs to wait for it";
    EXPECT_TRUE(ours->notebook.lost.empty());
}

TEST_F(ShmProcesses, MemoryOfAPeerIsReadWhereTheSystemAllowsIt) {
    static std::string from;
    from = pattern(300000, 1);
    start([](Rank& rank) {
        std::ranges::copy(pattern(300000, 2), from.begin());
        if (!rank.send(0, 1, "here it is", "").ok()) _exit(11);
        if (!rank.progress_until([&] { return rank.notebook.messages.size() == 1; })) _exit(12);
    });
    ASSERT_TRUE(ours->progress_until([&] { return ours->notebook.messages.size() == 1; }));
    if (!ours->transport.reads_memory(1)) GTEST_SKIP() << "not allowed here";
    // A fork has it at the same address.
    std::string to(from.size(), 'x');
    Completion whole(ours->executor), nothing(ours->executor), late(ours->executor);
    ours->transport.read_memory(1, reinterpret_cast<std::uintptr_t>(from.data()), to.data(),
                                to.size(), whole);
    ASSERT_TRUE(whole.done());
    EXPECT_TRUE(whole.status().ok()) << whole.status().text();
    EXPECT_TRUE(to == pattern(300000, 2));
    ours->transport.read_memory(1, 16, to.data(), 8, nothing);
    EXPECT_EQ(nothing.status().error_class(), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_TRUE(ours->transport.reads_memory(1)) << "another address may be right";
    ASSERT_TRUE(ours->send(1, 1, "go", "").ok());
    EXPECT_EQ(end_of_child(), 0);
    ours->transport.read_memory(1, reinterpret_cast<std::uintptr_t>(from.data()), to.data(), 8,
                                late);
    EXPECT_EQ(late.status().error_class(), MPI_ERR_PROC_ABORTED) << late.status().text();
}

TEST(ShmTransport, RanksOfANodeSeeWhatEachHasMeasured) {
    World world(2);
    std::uint64_t* const own = world[0].transport.shared_segment(0)->host_rates();
    std::uint64_t* const seen = world[1].transport.shared_segment(0)->host_rates();
    ASSERT_TRUE(own != nullptr && seen != nullptr);
    EXPECT_EQ(*seen, 0u);
    *own = 5;
    EXPECT_EQ(*seen, 5u);
    EXPECT_EQ(*world[0].transport.shared_segment(1)->host_rates(), 0u)
        << "the other one's is its own";
}

TEST_F(ShmProcesses, TheLastWordsOfAKilledPeerArriveBeforeTheNewsOfItsDeath) {
    start([](Rank& rank) {
        if (!rank.send(0, 1, "hello", "").ok()) _exit(11);
        if (!rank.progress_until([&] { return rank.notebook.messages.size() == 1; })) _exit(12);
        if (!rank.send(0, 1, "last words", "").ok()) _exit(13);
        raise(SIGKILL);
    });
    ASSERT_TRUE(ours->progress_until([&] { return ours->notebook.messages.size() == 1; }));
    ours->notebook.on_arrival = [&](int, MessageKind, ConstSpan header, ConstSpan) {
        EXPECT_TRUE(ours->notebook.lost.empty());
        ours->notebook.messages.push_back({1, 1, Notebook::text(header), ""});
    };
    ASSERT_TRUE(ours->send(1, 1, "die", "").ok());
    EXPECT_EQ(end_of_child(), -SIGKILL);
    ASSERT_TRUE(ours->progress_until([&] { return !ours->notebook.lost.empty(); }));
    ASSERT_EQ(ours->notebook.messages.size(), 2u);
    EXPECT_EQ(ours->notebook.messages[1].header, "last words");
    EXPECT_EQ(ours->notebook.lost[0].first, 1);
    EXPECT_EQ(ours->notebook.lost[0].second.error_class(), MPI_ERR_PROC_ABORTED);
    EXPECT_EQ(ours->send(1, 1, "any", "body").error_class(), MPI_ERR_PROC_ABORTED);
    for (int i = 0; i < 100000; ++i)
        ours->transport.progress();
    EXPECT_EQ(ours->notebook.lost.size(), 1u) << "told once";
    EXPECT_TRUE(ours->close());
}

TEST_F(ShmProcesses, APeerThatExitsWithoutClosingIsLost) {
    start([](Rank&) { _exit(3); });
    ASSERT_TRUE(ours->progress_until([&] { return !ours->notebook.lost.empty(); }));
    EXPECT_EQ(end_of_child(), 3);
    EXPECT_TRUE(ours->close());
}

TEST_F(ShmProcesses, AForkedChildOfARankDisturbsNothing) {
    start([](Rank& rank) {
        if (!rank.progress_until([&] { return rank.notebook.messages.size() == 2; })) _exit(11);
        if (!rank.close()) _exit(12);
    });
    ASSERT_TRUE(ours->send(1, 1, "one", "").ok());
    const pid_t grandchild = fork();
    if (grandchild == 0) {
        ours.reset();  // destructors in a child that is not in the job
        _exit(0);
    }
    int how = 0;
    waitpid(grandchild, &how, 0);
    EXPECT_EQ(how, 0);
    ASSERT_TRUE(ours->send(1, 1, "two", "").ok());
    EXPECT_TRUE(ours->close());
    EXPECT_EQ(end_of_child(), 0);
}

}  // namespace
}  // namespace gantry::transport::shm

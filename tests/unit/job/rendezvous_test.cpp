// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks without a launcher, as threads of the test; tests/cli/launching_test.py has real processes.
#include "job/rendezvous.hpp"

#include "base/clock.hpp"
#include "job/tcp.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>
#include <thread>

namespace gantry::job {
namespace {

std::string free_place() {
    const Result<Socket> any = listen_at("127.0.0.1:0");
    EXPECT_TRUE(any.ok()) << any.status().text();
    sockaddr_in address{};
    socklen_t length = sizeof address;
    getsockname(any.value().descriptor(), reinterpret_cast<sockaddr*>(&address), &length);
    return fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
}

Meeting meeting(const std::string& place, int rank, int size, Nanoseconds patience) {
    Meeting described;
    described.place = place;
    described.rank = rank;
    described.size = size;
    described.patience = patience;
    return described;
}

std::string why(const Status& status) {
    return std::string(status.text());
}

TEST(Rendezvous, RanksMeetExchangeAndPart) {
    const std::string place = free_place();
    const auto live = [&](int rank) {
        auto met = meet(meeting(place, rank, 3, 30 * kSecond));
        ASSERT_TRUE(met.ok()) << why(met.status());
        Job& job = *met.value();
        EXPECT_EQ(job.rank(), rank);
        EXPECT_EQ(job.size(), 3);
        EXPECT_EQ(job.local_size(), 3);
        const SteadyClock clock;
        Executor executor(clock);
        ASSERT_TRUE(job.put("key", std::string(3000, static_cast<char>('a' + rank))).ok());
        Task<Status> fence = job.fence(executor);
        fence.start();
        while (!fence.done()) {
            job.progress();
            executor.run_ready();
        }
        const Status fenced = fence.take();
        ASSERT_TRUE(fenced.ok()) << why(fenced);
        for (int other = 0; other < 3; ++other)
            EXPECT_EQ(job.get(other, "key").value(),
                      std::string(3000, static_cast<char>('a' + other)));
        EXPECT_TRUE(job.finalize().ok());
    };
    std::thread first(live, 0), second(live, 1);
    live(2);
    first.join();
    second.join();
}

TEST(Rendezvous, TakesItsLimitsFromTheParameters) {
    config::Config config;
    config.rendezvous = "host:1";
    config.rank = 1;
    config.size = 2;
    config.rendezvous_silence = 12 * kSecond;
    const auto described = explicit_meeting(config);
    ASSERT_TRUE(described.ok() && described.value());
    EXPECT_EQ(described.value()->silence, 12 * kSecond);
}

// The sum of what TCP waits for is the silence that is allowed.
TEST(Rendezvous, AHostThatIsSilentIsAskedBeforeItCountsAsGone) {
    for (const int step : {1, 2, 5}) {
        const Socket connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        notice_when_its_host_is_gone(connection.descriptor(), 6 * step * kSecond);
        const auto value = [&](int level, int option) {
            int set = -1;
            socklen_t length = sizeof set;
            getsockopt(connection.descriptor(), level, option, &set, &length);
            return set;
        };
        EXPECT_EQ(value(SOL_SOCKET, SO_KEEPALIVE), 1);
        EXPECT_EQ(value(IPPROTO_TCP, TCP_KEEPIDLE), 2 * step);
        EXPECT_EQ(value(IPPROTO_TCP, TCP_KEEPINTVL), step);
        EXPECT_EQ(value(IPPROTO_TCP, TCP_KEEPCNT), 4);
    }
}

// Two ranks that have met, of which rank 0 finalizes in a thread of its own.
class Parting : public testing::Test {
  protected:
    void SetUp() override {
        std::thread zero([this] { first = must_meet(0); });
        second = must_meet(1);
        zero.join();
    }
    void TearDown() override {
        second.reset();
        if (leaving.joinable()) leaving.join();
    }
    std::unique_ptr<Job> must_meet(int rank) {
        auto met = meet(meeting(place, rank, 2, 30 * kSecond));
        EXPECT_TRUE(met.ok()) << why(met.status());
        return met.ok() ? std::move(met.value()) : nullptr;
    }
    void let_rank_0_leave() {
        leaving = std::thread([this] { left = first->finalize(); });
        // It stops listening as soon as it wants to leave.
        while (connect_to(place, 30 * kSecond, Retry::no).ok())
            std::this_thread::yield();
    }
    const std::string place = free_place();
    std::unique_ptr<Job> first, second;
    std::thread leaving;
    Status left;
};

TEST_F(Parting, ARankThatLeavesLaterFindsTheStoreAndAnAnswer) {
    ASSERT_TRUE(first->put("key", "value").ok());
    const SteadyClock clock;
    Executor executor(clock);
    Task<Status> fences[] = {first->fence(executor), second->fence(executor)};
    for (Task<Status>& fence : fences)
        fence.start();
    while (!fences[0].done() || !fences[1].done()) {
        first->progress();
        second->progress();
        executor.run_ready();
    }
    let_rank_0_leave();
    EXPECT_EQ(second->get(0, "key").value(), "value");
    const Status finalized = second->finalize();
    EXPECT_TRUE(finalized.ok()) << why(finalized);
    leaving.join();
    EXPECT_TRUE(left.ok()) << why(left);
}

TEST_F(Parting, ARankThatHasFinalizedAndGoesOnHoldsNobody) {
    EXPECT_TRUE(second->finalize().ok());
    let_rank_0_leave();
    leaving.join();  // while `second` is still there
    EXPECT_TRUE(left.ok()) << why(left);
}

TEST_F(Parting, ARankThatDiesHoldsNobody) {
    let_rank_0_leave();
    second.reset();
    leaving.join();
    EXPECT_TRUE(left.ok()) << why(left);
}

TEST_F(Parting, ARank0ThatEndsInsideIsAnErrorToTheOthers) {
    const SteadyClock clock;
    Executor executor(clock);
    Task<Status> fence = second->fence(executor);
    fence.start();
    leaving = std::thread([this] { first.reset(); });
    while (!fence.done()) {
        second->progress();
        executor.run_ready();
    }
    const Status fenced = fence.take();
    ASSERT_FALSE(fenced.ok());
    EXPECT_NE(why(fenced).find("rank 0 has ended without leaving MPI"), std::string::npos)
        << why(fenced);
}

TEST(Rendezvous, ARankThatNeverComesIsNamedToEveryone) {
    const std::string place = free_place();
    const auto live = [&](int rank) {
        const auto met =
            meet(meeting(place, rank, 3, 2 * kSecond));  // the two others have met by then
        ASSERT_FALSE(met.ok());
        EXPECT_NE(why(met.status()).find("rank 1 of 3 did not come"), std::string::npos)
            << why(met.status());
    };
    std::thread first(live, 0);
    live(2);
    first.join();
}

TEST(Rendezvous, NobodyListeningIsAnErrorAfterTheTime) {
    const std::string place = free_place();
    const auto met = meet(meeting(place, 1, 2, 100 * kMillisecond));
    ASSERT_FALSE(met.ok());
    EXPECT_NE(why(met.status()).find(place + ": Connection refused"), std::string::npos)
        << why(met.status());
}

// One attempt in some 14,000 was given the port that it asked for.
TEST(Rendezvous, NobodyMeetsItselfWhereNobodyListens) {
    const std::string place = [] {
        for (int port = 40000;; port += 2) {
            std::string free = fmt::format("127.0.0.1:{}", port);
            if (listen_at(free).ok()) return free;
        }
    }();
    int met = 0;
    for (int attempt = 0; attempt < 100000; ++attempt)
        met += connect_to(place, kSecond, Retry::no).ok() ? 1 : 0;
    EXPECT_EQ(met, 0);
}

TEST(Rendezvous, APortThatIsTakenIsAnErrorAtOnce) {
    const std::string place = free_place();
    const Result<Socket> taken = listen_at(place);
    ASSERT_TRUE(taken.ok());
    const auto met = meet(meeting(place, 0, 2, 30 * kSecond));
    ASSERT_FALSE(met.ok());
    EXPECT_NE(why(met.status()).find("in use"), std::string::npos) << why(met.status());
}

TEST(Rendezvous, ARankThatIsTakenOrAnotherSizeIsRefused) {
    const std::string place = free_place();
    // Rank 0 waits for rank 1 all the while.
    std::thread first([&] { EXPECT_TRUE(meet(meeting(place, 0, 2, 30 * kSecond)).ok()); });
    const auto another_size = meet(meeting(place, 1, 4, 30 * kSecond));
    ASSERT_FALSE(another_size.ok());
    EXPECT_NE(why(another_size.status()).find("rank 1 of 4, but rank 0 waits for 2 ranks"),
              std::string::npos)
        << why(another_size.status());
    EXPECT_TRUE(meet(meeting(place, 1, 2, 30 * kSecond)).ok());
    first.join();
}

TEST(Rendezvous, HalfADescriptionIsRefusedAndNoneIsNone) {
    config::Config config;
    ASSERT_TRUE(explicit_meeting(config).ok());
    EXPECT_FALSE(explicit_meeting(config).value());
    config.rendezvous = "host:1";
    config.rank = 2;
    EXPECT_FALSE(explicit_meeting(config).ok()) << "no size";
    config.size = 2;
    EXPECT_FALSE(explicit_meeting(config).ok()) << "rank 2 of 2";
    config.rank = 1;
    ASSERT_TRUE(explicit_meeting(config).ok());
    EXPECT_EQ(explicit_meeting(config).value()->place, "host:1");
}

TEST(Rendezvous, TheFirstHostOfASlurmListIsFound) {
    EXPECT_EQ(first_host("n1"), "n1");
    EXPECT_EQ(first_host("n1,n2"), "n1");
    EXPECT_EQ(first_host("n[03-05,9],m1"), "n03");
    EXPECT_EQ(first_host("n[7,9]-ib,m1"), "n7-ib");
}

TEST(Rendezvous, ASlurmStepWithoutMpiMeetsOnItsFirstNode) {
    const std::pair<const char*, const char*> variables[] = {{"SLURM_PROCID", "3"},
                                                             {"SLURM_STEP_NUM_TASKS", "4"},
                                                             {"SLURM_JOB_ID", "12"},
                                                             {"SLURM_STEP_NODELIST", "n[1-2]"}};
    for (const auto& [name, value] : variables)
        setenv(name, value, 1);
    EXPECT_FALSE(slurm_meeting({}).value()) << "a batch script is no step";
    setenv("SLURM_STEP_ID", "0", 1);
    const auto found = slurm_meeting({});
    ASSERT_TRUE(found.ok() && found.value());
    EXPECT_EQ(found.value()->rank, 3);
    EXPECT_EQ(found.value()->size, 4);
    EXPECT_TRUE(found.value()->place.starts_with("n1:")) << found.value()->place;
    for (const auto& [name, value] : variables)
        unsetenv(name);
    unsetenv("SLURM_STEP_ID");
}

}  // namespace
}  // namespace gantry::job

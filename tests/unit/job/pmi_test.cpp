// SPDX-License-Identifier: BSD-3-Clause
//
// The PMI-1 client against a launcher of the test's own, whose answers are ordered and decorated as
// real ones do.
#include "job/pmi.hpp"
#include "job/pmi_server.hpp"

#include "base/clock.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace gantry::job {
namespace {

// Serves one rank of two; the other rank is "in the barrier" when the test says so.
class FakeLauncher {
  public:
    explicit FakeLauncher(std::string mapping) : mapping_(std::move(mapping)) {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
        thread_ = std::thread([this] { serve(); });
    }
    ~FakeLauncher() {
        shutdown(ends_[0], SHUT_RDWR);
        thread_.join();
        close(ends_[0]);
    }
    int rank_socket() const { return ends_[1]; }
    void hang_up() { shutdown(ends_[0], SHUT_RDWR); }
    void hang_up_behind(std::string command) {
        const std::lock_guard guard(mutex_);
        last_ = std::move(command);
    }
    void let_the_other_rank_arrive() { say("cmd=barrier_out rc=0\n"); }
    void wait_until_asked(std::string_view what) {
        while (!was_asked(what))
            std::this_thread::yield();
    }
    bool was_asked(std::string_view what) {
        const std::lock_guard guard(mutex_);
        for (const std::string& line : asked_)
            if (line.starts_with(what)) return true;
        return false;
    }
    // As if another rank had put it.
    void store(const std::string& key, const std::string& value) {
        const std::lock_guard guard(mutex_);
        store_[key] = value;
    }
    std::map<std::string, std::string> stored() {
        const std::lock_guard guard(mutex_);
        return store_;
    }

  private:
    void say(std::string_view text) {
        EXPECT_EQ(write(ends_[0], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    void serve() {
        std::string received;
        char buffer[4096];
        for (ssize_t length = 0; (length = read(ends_[0], buffer, sizeof buffer)) > 0;) {
            received.append(buffer, static_cast<std::size_t>(length));
            for (std::size_t end = 0; (end = received.find('\n')) != std::string::npos;
                 received.erase(0, end + 1)) {
                const std::string line = received.substr(0, end);
                answer(line, PmiLine(line));
                const std::lock_guard guard(mutex_);
                asked_.push_back(line);
                if (PmiLine(line).command() == last_) hang_up();
            }
        }
    }
    void answer(const std::string&, const PmiLine& question) {
        const std::string command(question.command());
        if (command == "init")
            return say("cmd=response_to_init pmi_version=1 pmi_subversion=2 rc=0\n");
        if (command == "get_maxes")
            return say("cmd=maxes vallen_max=128 kvsname_max=256 keylen_max=64 rc=0\n");
        if (command == "get_appnum") return say("rc=0 cmd=appnum appnum=3\n");
        if (command == "get_universe_size")
            return say("cmd=universe_size size=-1 msg=not set here\n");
        if (command == "get_my_kvsname") return say("cmd=my_kvsname kvsname=kvs_1_2 tag=0\n");
        if (command == "finalize") return say("cmd=finalize_ack\n");
        if (command == "put") {
            EXPECT_LT(question.text("value").size(), 128u);
            store(std::string(question.text("key")), std::string(question.text("value")));
            return say("cmd=put_result rc=0 msg=success\n");
        }
        if (command == "get") {
            const std::string key(question.text("key"));
            if (key == "PMI_process_mapping" && !mapping_.empty())
                return say("cmd=get_result rc=0 value=" + mapping_ + "\n");
            const auto known = stored();
            const auto found = known.find(key);
            if (found == known.end()) return say("cmd=get_result rc=-1 msg=key_not_found\n");
            return say("value=" + found->second + " rc=0 msg=success cmd=get_result\n");
        }
    }

    std::string mapping_;
    int ends_[2] = {-1, -1};
    std::thread thread_;
    std::mutex mutex_;
    std::map<std::string, std::string> store_;
    std::vector<std::string> asked_;
    std::string last_ = "none";
};

class Pmi : public testing::Test {
  protected:
    void start(std::string mapping = "(vector,(0,1,2))") {
        launcher = std::make_unique<FakeLauncher>(std::move(mapping));
        auto started = PmiJob::start(PmiWire(launcher->rank_socket()), 1, 2);
        ASSERT_TRUE(started.ok()) << started.status().text();
        job = std::move(started.value());
    }
    Status finish(Task<Status>& task) {
        while (!task.done()) {
            job->progress();
            executor.run_ready();
        }
        return task.take();
    }
    SteadyClock clock;
    Executor executor{clock};
    std::unique_ptr<FakeLauncher> launcher;
    std::unique_ptr<Job> job;
};

TEST_F(Pmi, LearnsWhoAndWhereItIs) {
    start();
    EXPECT_EQ(job->rank(), 1);
    EXPECT_EQ(job->size(), 2);
    EXPECT_EQ(job->id(), "kvs_1_2");
    EXPECT_EQ(job->app_number(), 3);
    EXPECT_EQ(job->universe_size(), -1);
    EXPECT_EQ(job->nodes(), (std::vector<int>{0, 0}));
    EXPECT_EQ(job->local_rank(), 1);
    EXPECT_EQ(job->local_size(), 2);
}

TEST_F(Pmi, AFenceStoresWhatWasPutAndDoesNotBlock) {
    start();
    const std::string value("any \n bytes\0 at all ", 20);
    ASSERT_TRUE(job->put("key", value + std::string(1000, '\xee')).ok());
    EXPECT_TRUE(launcher->stored().empty()) << "local until the fence";
    Task<Status> fence = job->fence(executor);
    fence.start();
    while (!launcher->was_asked("cmd=barrier_in")) {
        job->progress();
        executor.run_ready();
    }
    EXPECT_EQ(job->progress(), 0);
    EXPECT_FALSE(fence.done()) << "the other rank has not come";
    launcher->let_the_other_rank_arrive();
    EXPECT_TRUE(finish(fence).ok());
    EXPECT_GT(launcher->stored().size(), 10u) << "split below the longest value";
    EXPECT_EQ(job->get(1, "key").value(), value + std::string(1000, '\xee'));
}

TEST_F(Pmi, AValueThatNobodyPutIsAnErrorThatNamesIt) {
    start();
    const auto missing = job->get(0, "absent");
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(std::string(missing.status().text()).find("'absent' of rank 0"), std::string::npos)
        << missing.status().text();
}

TEST_F(Pmi, WithoutAMappingTheRanksTellEachOtherTheirHosts) {
    launcher = std::make_unique<FakeLauncher>("");
    std::thread other_rank([&] {
        launcher->wait_until_asked("cmd=barrier_in");
        launcher->store("gantry-0-host-0", "another host");
        launcher->let_the_other_rank_arrive();
    });
    auto started = PmiJob::start(PmiWire(launcher->rank_socket()), 1, 2);
    other_rank.join();
    ASSERT_TRUE(started.ok()) << started.status().text();
    EXPECT_EQ(started.value()->nodes(), (std::vector<int>{0, 1}));
    EXPECT_EQ(started.value()->local_size(), 1);
}

TEST_F(Pmi, ALauncherThatHangsUpFailsTheFence) {
    start();
    Task<Status> fence = job->fence(executor);
    fence.start();
    launcher->hang_up();
    const Status status = finish(fence);
    EXPECT_EQ(status.error_class(), MPI_ERR_OTHER);
    EXPECT_NE(std::string(status.text()).find("launcher"), std::string::npos) << status.text();
}

TEST_F(Pmi, AbortTellsTheLauncherTheCode) {
    start();
    std::thread kill([&] {
        launcher->wait_until_asked("cmd=abort exitcode=7");
        launcher->hang_up();
    });
    job->abort(7, "the test says so");
    kill.join();
}

TEST_F(Pmi, FinalizeIsSaidOnce) {
    start();
    EXPECT_TRUE(job->finalize().ok());
    EXPECT_TRUE(job->finalize().ok());
}

TEST_F(Pmi, AnAnswerCountsThoughTheLauncherHangsUpBehindIt) {
    start();
    launcher->hang_up_behind("finalize");
    const Status finalized = job->finalize();
    EXPECT_TRUE(finalized.ok()) << finalized.text();
}

TEST_F(Pmi, ALauncherThatDiesFailsFinalize) {
    start();
    launcher->hang_up();
    const Status finalized = job->finalize();
    ASSERT_FALSE(finalized.ok());
    EXPECT_NE(std::string(finalized.text()).find("launcher"), std::string::npos);
}

TEST(PmiLine, IsReadByKey) {
    const PmiLine answer("rc=0 value=(vector,(0,1,2)) msg=two words cmd=get_result");
    EXPECT_EQ(answer.command(), "get_result");
    EXPECT_EQ(answer.text("msg"), "two words");
    EXPECT_EQ(answer.text("value"), "(vector,(0,1,2))");
    EXPECT_EQ(answer.number("rc"), 0);
    EXPECT_FALSE(answer.number("msg"));
    EXPECT_TRUE(answer.accepted());
    EXPECT_FALSE(PmiLine("cmd=x rc=-1").accepted());
}

// Our own server and client.
class PmiDeaths : public testing::Test {
  protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        server.offer_deaths();
        server.add_rank(0, ends[0], 0);
        std::thread serving([this] {
            while (!started)
                server.serve(0);
        });
        auto begun = PmiJob::start(PmiWire(ends[1]), 0, 2);
        started = true;
        serving.join();
        ASSERT_TRUE(begun.ok()) << begun.status().text();
        job = std::move(begun.value());
    }
    PmiServer server{2, "job", "(vector,(0,1,2))"};
    std::atomic<bool> started{false};
    std::unique_ptr<Job> job;
    SteadyClock clock;
    Executor executor{clock};
};

TEST_F(PmiDeaths, AreHeardOnceByWhoWatches) {
    EXPECT_TRUE(job->deaths().empty());
    EXPECT_TRUE(job->watch_deaths(9));
    server.serve(0);
    EXPECT_EQ(server.number(), "9");
    server.tell_death("9", 1);
    server.tell_death("4711", 3);
    EXPECT_EQ(job->deaths(), (std::vector<Death>{{9, 1}, {4711, 3}}));
    EXPECT_TRUE(job->deaths().empty());
}

TEST_F(PmiDeaths, MayBeToldBetweenAQuestionAndItsAnswer) {
    ASSERT_TRUE(job->watch_deaths(9));
    server.serve(0);
    Task<Status> fence = job->fence(executor);
    fence.start();
    server.tell_death("9", 1);
    server.serve(0);
    server.lose(1);  // the barrier opens
    while (!fence.done()) {
        job->progress();
        executor.run_ready();
    }
    EXPECT_TRUE(fence.take().ok());
    EXPECT_EQ(job->deaths(), (std::vector<Death>{{9, 1}}));
}

// It would wait for an answer for ever.
TEST_F(Pmi, GforkerIsAskedForNoNames) {
    start();
    setenv("MPI_UNIVERSE_SIZE", "-1", 1);
    std::string port;
    Task<Status> tasks[] = {job->publish_name(executor, "name", "port"),
                            job->unpublish_name(executor, "name"),
                            job->lookup_name(executor, "name", &port)};
    for (Task<Status>& task : tasks)
        task.start();
    EXPECT_EQ(finish(tasks[0]).error_class(), MPI_ERR_SERVICE);
    EXPECT_EQ(finish(tasks[1]).error_class(), MPI_ERR_SERVICE);
    EXPECT_EQ(finish(tasks[2]).error_class(), MPI_ERR_NAME);
    unsetenv("MPI_UNIVERSE_SIZE");
}

// Hydra with -disable-auto-cleanup.
TEST_F(Pmi, ALauncherThatSendsASignalIsAskedWhoDied) {
    const auto before = std::signal(SIGUSR1, SIG_DFL);
    start();
    launcher->store("PMI_dead_processes", "");
    EXPECT_TRUE(job->watch_deaths(9));
    EXPECT_FALSE(launcher->was_asked("cmd=watch_deaths")) << "which such launchers do not know";
    EXPECT_TRUE(job->deaths().empty());
    EXPECT_TRUE(job->watch_deaths(9)) << "asked again";
    launcher->store("PMI_dead_processes", "0");
    std::raise(SIGUSR1);
    EXPECT_EQ(job->deaths(), (std::vector<Death>{{9, 0}}));
    EXPECT_TRUE(job->deaths().empty());
    std::signal(SIGUSR1, before);
}

TEST_F(Pmi, AProgramThatUsesTheSignalItselfKeepsIt) {
    const auto before = std::signal(SIGUSR1, SIG_IGN);
    start();
    launcher->store("PMI_dead_processes", "");
    EXPECT_FALSE(job->watch_deaths(9));
    EXPECT_EQ(std::signal(SIGUSR1, before), SIG_IGN);
    EXPECT_TRUE(job->deaths().empty());
}

// gforker and Slurm know no such list, and never send the signal themselves.
TEST_F(Pmi, ALauncherThatListsNoDeadLeavesTheSignalToTheProgram) {
    const auto before = std::signal(SIGUSR1, SIG_DFL);
    start();
    EXPECT_FALSE(job->watch_deaths(9));
    EXPECT_EQ(std::signal(SIGUSR1, before), SIG_DFL);
}

// Hydra without that option ends all others itself, and passes on what the user sends to mpiexec.
TEST_F(Pmi, ASignalByWhichNobodyDiedEndsTheProgram) {
    EXPECT_EXIT(
        {
            std::signal(SIGUSR1, SIG_DFL);
            start();
            launcher->store("PMI_dead_processes", "");
            job->watch_deaths(9);
            std::raise(SIGUSR1);
            job->deaths();
        },
        testing::KilledBySignal(SIGUSR1), "");
}

}  // namespace
}  // namespace gantry::job

// SPDX-License-Identifier: BSD-3-Clause
//
// The PMIx client against a libpmix of the test's own (tests/stubs/pmix.cpp).
#include "job/pmix.hpp"

#include "base/clock.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gantry::job {
namespace {

class Pmix : public testing::Test {
  protected:
    void SetUp() override {
        stub = dlopen(GANTRY_STUB_PMIX, RTLD_NOW);
        ASSERT_NE(stub, nullptr) << dlerror();
        call<void()>("stub_forget")();
        number(pmix::kEveryRank, "pmix.job.size", 2);
        number(pmix::kEveryRank, "pmix.univ.size", 16);
        number(1, "pmix.appnum", 3);
    }
    template <class Function>
    Function* call(const char* name) {
        return reinterpret_cast<Function*>(dlsym(stub, name));
    }
    void number(std::uint32_t rank, const char* key, std::uint32_t value) {
        call<void(std::uint32_t, const char*, std::uint32_t)>("stub_number")(rank, key, value);
    }
    void text(std::uint32_t rank, const char* key, const char* value) {
        call<void(std::uint32_t, const char*, const char*)>("stub_text")(rank, key, value);
    }
    void open_fence(int code) { call<void(int)>("stub_open_fence")(code); }
    int fences() { return call<int()>("stub_fences")(); }
    void on_one_node() {
        number(0, "pmix.nodeid", 7);
        number(1, "pmix.nodeid", 7);
    }
    void start() {
        auto library = pmix::load(GANTRY_STUB_PMIX);
        ASSERT_TRUE(library.ok()) << library.status().text();
        auto started = PmixJob::start(library.value());
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
    void* stub = nullptr;
    SteadyClock clock;
    Executor executor{clock};
    std::unique_ptr<Job> job;
};

TEST_F(Pmix, LearnsWhoAndWhereItIs) {
    on_one_node();
    start();
    EXPECT_STREQ(job->launcher(), "pmix");
    EXPECT_EQ(job->rank(), 1);
    EXPECT_EQ(job->size(), 2);
    EXPECT_EQ(job->id(), "stub_job@1") << "fit for a file's name";
    EXPECT_EQ(job->app_number(), 3);
    EXPECT_EQ(job->universe_size(), 16);
    EXPECT_EQ(job->local_rank(), 1);
}

TEST_F(Pmix, HostNamesTellTheNodesWhenNumbersDoNot) {
    text(0, "pmix.hname", "first");
    text(1, "pmix.hname", "second");
    start();
    EXPECT_EQ(job->nodes(), (std::vector<int>{0, 1}));
}

TEST_F(Pmix, WithoutEitherTheRanksTellEachOther) {
    call<void(std::uint32_t, const char*, const char*)>("stub_bytes")(0, "gantry-host",
                                                                      "elsewhere");
    std::thread other_rank([this] {
        while (fences() == 0)
            std::this_thread::yield();
        open_fence(0);
    });
    start();
    other_rank.join();
    EXPECT_EQ(job->nodes(), (std::vector<int>{0, 1}));
}

TEST_F(Pmix, AFenceStoresWhatWasPutAndDoesNotBlock) {
    on_one_node();
    start();
    const std::string value = std::string("any \n bytes\0 at all", 19) + std::string(5000, '\xee');
    ASSERT_TRUE(job->put("key", value).ok());
    Task<Status> fence = job->fence(executor);
    fence.start();
    EXPECT_EQ(job->progress(), 0);
    EXPECT_FALSE(fence.done()) << "the other rank has not come";
    open_fence(0);
    EXPECT_TRUE(finish(fence).ok());
    EXPECT_EQ(job->get(1, "key").value(), value);
}

TEST_F(Pmix, AFenceThatFailsSaysWhy) {
    on_one_node();
    start();
    Task<Status> fence = job->fence(executor);
    fence.start();
    open_fence(-1);
    const Status status = finish(fence);
    EXPECT_EQ(status.error_class(), MPI_ERR_OTHER);
    EXPECT_NE(std::string(status.text()).find("PMIX_ERROR"), std::string::npos) << status.text();
}

TEST_F(Pmix, AValueThatNobodyPutIsAnErrorThatNamesIt) {
    on_one_node();
    start();
    const auto missing = job->get(0, "absent");
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(std::string(missing.status().text()).find("'absent' of rank 0"), std::string::npos)
        << missing.status().text();
}

TEST_F(Pmix, AbortTellsTheLauncherTheCodeAndTheReason) {
    on_one_node();
    start();
    job->abort(7, "the test says so");
    const char* reason = nullptr;
    EXPECT_EQ(call<int(const char**)>("stub_abort")(&reason), 7);
    EXPECT_STREQ(reason, "the test says so");
}

TEST_F(Pmix, ALibraryWithoutMungeStartsByTheSecondChoice) {
    on_one_node();
    setenv("PMIX_MCA_psec", "munge,native", 1);
    start();
    EXPECT_STREQ(getenv("PMIX_MCA_psec"), "munge,native") << "children see what was there";
    unsetenv("PMIX_MCA_psec");
}

TEST(PmixLibrary, OneThatIsMissingOrIncompleteIsNamedWithTheRemedy) {
    for (const char* path : {"/nowhere/libpmix.so.2", "libm.so.6"}) {
        const auto library = pmix::load(path);
        ASSERT_FALSE(library.ok());
        const std::string said(library.status().text());
        EXPECT_NE(said.find(path), std::string::npos) << said;
        EXPECT_NE(said.find("GANTRY_PMIX_LIBRARY"), std::string::npos) << said;
    }
}

TEST(PmixLibrary, WithoutANamespaceThereIsNoPmixJob) {
    unsetenv("PMIX_NAMESPACE");
    const auto job = discover_pmix("/nowhere");
    ASSERT_TRUE(job.ok());
    EXPECT_EQ(job.value(), nullptr);
}

TEST_F(Pmix, SpawnsProgramsAndTellsThemWhereTheirParentsWait) {
    on_one_node();
    start();
    SpawnOrder order;
    order.programs.push_back({{"./first", "a b"}, 2, {{"wdir", "/tmp"}, {"host", "other"}}});
    order.programs.push_back({{"second"}, 1, {}});
    order.parent_port = "host:1#word";
    call<const char*(int)>("stub_spawned")(0);
    Task<Status> spawned = job->spawn(executor, order);
    spawned.start();
    EXPECT_TRUE(finish(spawned).ok());
    EXPECT_STREQ(call<const char*(int)>("stub_spawned")(-31),
                 "2 ./first a b in /tmp pmix.host=other pmix.mapby=:OVERSUBSCRIBE "
                 "GANTRY_PARENT_PORT=host:1#word\n"
                 "1 second pmix.mapby=:OVERSUBSCRIBE GANTRY_PARENT_PORT=host:1#word\n");
    Task<Status> refused = job->spawn(executor, order);
    refused.start();
    const Status why = finish(refused);
    EXPECT_EQ(why.error_class(), MPI_ERR_SPAWN);
    EXPECT_NE(why.text().find("does not start ./first: PMIX_ERROR"), std::string_view::npos);
}

TEST_F(Pmix, OpenMpi4IsAskedForNoProcesses) {
    on_one_node();
    start();
    setenv("OMPI_MCA_orte_hnp_uri", "1.0;tcp://host:1", 1);
    SpawnOrder order;
    order.programs.push_back({{"./first"}, 1, {}});
    Task<Status> refused = job->spawn(executor, order);
    refused.start();
    EXPECT_EQ(finish(refused).error_class(), MPI_ERR_SPAWN);
    unsetenv("OMPI_MCA_orte_hnp_uri");
}

TEST_F(Pmix, HearsOfRanksThatDie) {
    on_one_node();
    start();
    const auto die = [this](const char* nspace, std::uint32_t rank) {
        return call<bool(const char*, std::uint32_t)>("stub_die")(nspace, rank);
    };
    EXPECT_FALSE(die("stub/job@1", 0)) << "before it asks it is told nothing";
    ASSERT_TRUE(job->watch_deaths(77));
    EXPECT_TRUE(job->deaths().empty());
    EXPECT_TRUE(die("another job", 0));
    EXPECT_TRUE(job->deaths().empty()) << "which has no number here";
    EXPECT_TRUE(die("stub/job@1", 0));
    EXPECT_EQ(job->deaths(), (std::vector<Death>{{77, 0}}));
    EXPECT_TRUE(job->deaths().empty()) << "each is told once";
    EXPECT_TRUE(job->finalize().ok());
}

TEST_F(Pmix, OnlyASpawnedJobHasParents) {
    on_one_node();
    setenv("GANTRY_PARENT_PORT", "host:1#word", 1);
    start();
    EXPECT_EQ(*job->parent_port(), "");
    number(1, "pmix.parent", 0);
    EXPECT_EQ(*job->parent_port(), "host:1#word");
    unsetenv("GANTRY_PARENT_PORT");
    EXPECT_EQ(*job->parent_port(), "");
}

TEST_F(Pmix, PublishesLooksUpAndTakesBackNames) {
    on_one_node();
    start();
    const auto ended = [this](Task<Status> task) {
        task.start();
        return finish(task).error_class();
    };
    std::string port;
    EXPECT_EQ(ended(job->lookup_name(executor, "name", &port)), MPI_ERR_NAME);
    EXPECT_EQ(ended(job->unpublish_name(executor, "name")), MPI_ERR_SERVICE);
    EXPECT_EQ(ended(job->publish_name(executor, "name", "port")), MPI_SUCCESS);
    EXPECT_EQ(ended(job->publish_name(executor, "name", "other")), MPI_ERR_SERVICE);
    EXPECT_EQ(ended(job->lookup_name(executor, "name", &port)), MPI_SUCCESS);
    EXPECT_EQ(port, "port");
    EXPECT_EQ(ended(job->unpublish_name(executor, "name")), MPI_SUCCESS);
    EXPECT_EQ(ended(job->lookup_name(executor, "name", &port)), MPI_ERR_NAME);
}

}  // namespace
}  // namespace gantry::job

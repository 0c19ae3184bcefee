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

}  // namespace
}  // namespace gantry::job

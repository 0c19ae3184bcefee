// SPDX-License-Identifier: BSD-3-Clause
#include "job/singleton.hpp"

#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace gantry::job {
namespace {

TEST(Singleton, IsOneRankWithAStoreOfItsOwn) {
    const SteadyClock clock;
    Executor executor(clock);
    Singleton job;
    EXPECT_EQ(job.size(), 1);
    EXPECT_EQ(job.local_rank(), 0);
    EXPECT_EQ(job.local_size(), 1);
    ASSERT_TRUE(job.put("key", "value").ok());
    EXPECT_FALSE(job.get(0, "key").ok()) << "not before the fence";
    Task<Status> fence = job.fence(executor);
    fence.start();
    ASSERT_TRUE(fence.done());
    EXPECT_TRUE(fence.take().ok());
    EXPECT_EQ(job.get(0, "key").value(), "value");
    EXPECT_FALSE(job.get(0, "other").ok());
    EXPECT_TRUE(job.finalize().ok());
}

}  // namespace
}  // namespace gantry::job

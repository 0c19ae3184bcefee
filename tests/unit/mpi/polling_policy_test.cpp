// SPDX-License-Identifier: BSD-3-Clause
//
// What the progress thread does between two looks: decided without a thread and without a clock.
#include "mpi/engine/polling_policy.hpp"

#include <gtest/gtest.h>

namespace gantry::mpi {
namespace {

using Next = PollingPolicy::Next;

constexpr Look kNothing{true, 0, false};
constexpr Look kPending{true, 0, true};
constexpr Look kProgramInside{false, 0, false};
constexpr Look kEvent{true, 1, true};

Next after(PollingPolicy& polling_policy, const Look& look, Nanoseconds now) {
    polling_policy.looked(look, now);
    return polling_policy.next();
}

TEST(PollingPolicy, AloneItIsAwakeBetweenMessagesSoThatNobodyHasToWakeIt) {
    PollingPolicy polling_policy(true, kMillisecond, 0);
    EXPECT_EQ(after(polling_policy, kEvent, 10), Next::look);
    const Nanoseconds later = 10 + kMillisecond - 1;
    EXPECT_EQ(after(polling_policy, kNothing, later), Next::watch);
    EXPECT_EQ(after(polling_policy, kProgramInside, later), Next::watch);
    EXPECT_EQ(after(polling_policy, kPending, later), Next::look);
    EXPECT_EQ(after(polling_policy, kNothing, later + 1), Next::sleep);
    EXPECT_EQ(after(polling_policy, kPending, later + 1), Next::sleep);
}

TEST(PollingPolicy, OnASharedProcessorItRestsBetweenLooksAndSleepsSoon) {
    PollingPolicy polling_policy(false, kMillisecond, 0);
    EXPECT_EQ(after(polling_policy, kEvent, 10), Next::look);
    EXPECT_EQ(after(polling_policy, kNothing, 11), Next::sleep);
    EXPECT_EQ(after(polling_policy, kPending, 11), Next::rest);
    EXPECT_EQ(after(polling_policy, kProgramInside, 11), Next::rest);
    EXPECT_EQ(after(polling_policy, kPending, 10 + PollingPolicy::kAwake), Next::sleep);
}

TEST(PollingPolicy, NapsGrowUntilSomethingHappens) {
    PollingPolicy polling_policy(false, kMillisecond, 0);
    EXPECT_EQ(polling_policy.nap(true), PollingPolicy::kFirstNap);
    EXPECT_EQ(polling_policy.nap(true), 2 * PollingPolicy::kFirstNap);
    for (int i = 0; i < 10; ++i)
        polling_policy.nap(true);
    EXPECT_EQ(polling_policy.nap(true), PollingPolicy::kLongestNap);
    EXPECT_EQ(polling_policy.nap(false), PollingPolicy::kIdleNap);
    polling_policy.happened(1);
    EXPECT_EQ(polling_policy.nap(true), PollingPolicy::kFirstNap);
}

}  // namespace
}  // namespace gantry::mpi

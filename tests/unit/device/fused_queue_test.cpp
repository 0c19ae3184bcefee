// SPDX-License-Identifier: BSD-3-Clause
//
// When small copies that wait go, as the facts of the GPU say.
#include "device/fused_queue.hpp"

#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace gantry::device {
namespace {

constexpr auto kYes = Launches::possible, kNo = Launches::none;

class FusedQueueTest : public testing::Test {
  protected:
    static GpuFacts facts() {
        GpuFacts facts;
        facts.launch_worth_bytes = 1000;
        facts.launch_worth_copies = 5;
        return facts;
    }
    void push(int count, Bytes bytes, BatchHint batch = BatchHint::unknown) {
        for (int i = 0; i < count; ++i) {
            Copy copy;
            copy.bytes = bytes;
            copy.batch = batch;
            queue_.push(copy, done_);
        }
    }
    SteadyClock clock_;
    Executor executor_{clock_};
    Completion done_{executor_};
    FusedQueue queue_{facts()};
};

TEST_F(FusedQueueTest, OneAloneGoesAtOnceAndNotBehindOthers) {
    push(1, 8);
    EXPECT_TRUE(queue_.goes_at_once(false, kYes));
    EXPECT_FALSE(queue_.goes_at_once(true, kYes));
}

TEST_F(FusedQueueTest, WhileMoreComeTheyAreWaitedFor) {
    push(2, 8);
    EXPECT_FALSE(queue_.goes_now(false, kYes));  // more came since the last look
    EXPECT_TRUE(queue_.goes_now(false, kYes));
    EXPECT_FALSE(queue_.goes_now(true, kYes));
}

TEST_F(FusedQueueTest, AsManyAsALaunchWantsAreNotLetWait) {
    push(4, 8);
    EXPECT_FALSE(queue_.goes_now(false, kYes));
    push(1, 8);
    EXPECT_TRUE(queue_.goes_now(false, kYes));
}

TEST_F(FusedQueueTest, ManyBytesGoBehindCopiesInFlight) {
    push(3, 333);
    EXPECT_FALSE(queue_.goes_at_once(true, kYes));
    push(1, 1);
    EXPECT_TRUE(queue_.goes_at_once(true, kYes));
    EXPECT_TRUE(queue_.goes_now(true, kYes));
    EXPECT_FALSE(queue_.goes_now(true, kNo)) << "without kernels nothing is gained by it";
    queue_.drop_first(1);
    EXPECT_FALSE(queue_.goes_now(true, kYes));
}

TEST_F(FusedQueueTest, OneThatExpectsCompanyGoesAloneWhenNoneCameWithIt) {
    push(1, 8, BatchHint::expected);
    EXPECT_FALSE(queue_.goes_at_once(false, kYes));
    EXPECT_FALSE(queue_.goes_after_all(true, BatchHint::expected));
    EXPECT_TRUE(queue_.goes_after_all(false, BatchHint::expected));
    push(1, 8, BatchHint::expected);
    EXPECT_FALSE(queue_.goes_after_all(false, BatchHint::expected));
    EXPECT_FALSE(queue_.goes_now(false, kYes)) << "more came";
    EXPECT_TRUE(queue_.goes_now(false, kYes));
}

TEST_F(FusedQueueTest, WhenNoMoreComeAllGoAlsoBehindCopiesInFlight) {
    EXPECT_FALSE(queue_.goes_after_all(false, BatchHint::none));
    push(3, 8, BatchHint::expected);
    EXPECT_FALSE(queue_.goes_now(true, kYes));
    EXPECT_TRUE(queue_.goes_after_all(true, BatchHint::none));
    EXPECT_TRUE(queue_.goes_now(true, kYes)) << "when there was no room for them before";
    push(1, 8, BatchHint::expected);
    EXPECT_FALSE(queue_.goes_now(true, kYes)) << "more came after all";
}

TEST_F(FusedQueueTest, NotTooMuchGoesTogether) {
    push(7, kMostInOneCall / 4);
    EXPECT_EQ(queue_.first_group(2), 2u) << "no more than one launch holds";
    EXPECT_EQ(queue_.first_group(100), 4u);
    queue_.drop_first(4);
    EXPECT_EQ(queue_.first_group(100), 3u);
    queue_.drop_first(2);
    EXPECT_EQ(queue_.first_group(100), 1u);
}

TEST_F(FusedQueueTest, NotSoSmallOnesWaitForTheEndOfTheTurnOnly) {
    push(2, 8, BatchHint::expected);
    EXPECT_FALSE(queue_.goes_after_all(false, BatchHint::expected));
    queue_.drop_first(2);
    push(2, kMostFused + 1, BatchHint::expected);
    EXPECT_FALSE(queue_.goes_after_all(true, BatchHint::expected));
    EXPECT_TRUE(queue_.goes_after_all(false, BatchHint::expected));
}

TEST_F(FusedQueueTest, LargeOnesWaitForThoseThatAreExpectedInTheSameTurn) {
    GpuFacts worth;
    worth.launch_worth_bytes = 2 * kMiB;
    FusedQueue large(worth, Sizes::large);
    Copy copy;
    copy.bytes = kMiB;
    copy.batch = BatchHint::expected;
    large.push(copy, done_);
    EXPECT_FALSE(large.goes_after_all(true, BatchHint::expected));
    large.push(copy, done_);
    EXPECT_FALSE(large.goes_at_once(false, kNo)) << "the turn is not over";
    EXPECT_TRUE(large.goes_after_all(false, BatchHint::expected));
    EXPECT_TRUE(large.goes_after_all(true, BatchHint::expected)) << "2 MiB go behind others";
    EXPECT_TRUE(large.goes_now(true, kNo)) << "copy engines need no kernels";
}

TEST_F(FusedQueueTest, OfWhichNobodyKnowsWhetherOthersComeOnlySmallOnesWait) {
    Copy copy;
    for (const BatchHint batch : {BatchHint::unknown, BatchHint::expected}) {
        copy.batch = batch;
        copy.bytes = kMostFused;
        EXPECT_TRUE(goes_with_others(copy));
        copy.bytes = kMostFused + 1;
        EXPECT_EQ(goes_with_others(copy), batch == BatchHint::expected);
    }
}

TEST_F(FusedQueueTest, NothingNeverGoes) {
    EXPECT_FALSE(queue_.goes_now(false, kYes));
    push(2, 2000);
    EXPECT_EQ(queue_.pop().copy.bytes, 2000u);
    queue_.drop_first(1);
    EXPECT_TRUE(queue_.empty());
    EXPECT_FALSE(queue_.goes_now(false, kYes));
}

}  // namespace
}  // namespace gantry::device

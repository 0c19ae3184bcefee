// SPDX-License-Identifier: BSD-3-Clause
//
// When somebody who waits gives its processor away: counted, without a clock and without a kernel.
#include "base/patience.hpp"

#include <gtest/gtest.h>

namespace gantry {
namespace {

// Empty polls until the processor is offered.
int polls(Patience& patience) {
    int count = 1;
    while (!patience.exhausted())
        ++count;
    return count;
}

TEST(Patience, PollsAsOftenAsItWasToldBeforeTheFirstOffer) {
    Patience patience(2000);
    EXPECT_EQ(polls(patience), 2001);
    Patience none(0);
    EXPECT_EQ(polls(none), 1);
}

TEST(Patience, OffersAtOnceAfterAFewAnswersThatNeededOurProcessor) {
    Patience patience(2000);
    int offers = 0;
    for (; patience.limit() > 0; ++offers) {
        polls(patience);
        patience.yielded(800 * kMicrosecond);  // the other rank spun as long before it yielded
        patience.rewarded();
        ASSERT_LT(offers, 10);
    }
    EXPECT_EQ(offers, 6);
    EXPECT_EQ(polls(patience), 1);
}

TEST(Patience, ComesBackWhenNobodyWantsTheProcessor) {
    Patience patience(2000);
    while (patience.limit() > 0) {
        polls(patience);
        patience.yielded(5 * kMicrosecond);
        patience.rewarded();
    }
    int offers = 0;
    for (; patience.limit() < 2000; ++offers) {
        polls(patience);
        patience.yielded(400);
        patience.rewarded();
        ASSERT_LT(offers, 100);
    }
    EXPECT_EQ(offers, 63);
}

// A thread that needs our processor now and then: it begins something, sleeps until that is due, and ends it.
TEST(Patience, LearnsFromTheLastYieldOfAWaitHoweverManyWereInVain) {
    Patience patience(2000);
    for (int wait = 0; wait < 6; ++wait) {
        polls(patience);
        patience.yielded(10 * kMicrosecond);
        for (int i = 0; i < 30; ++i) {
            EXPECT_TRUE(patience.exhausted());
            patience.yielded(400);
        }
        EXPECT_TRUE(patience.exhausted());
        patience.yielded(10 * kMicrosecond);
        patience.rewarded();
    }
    EXPECT_EQ(patience.limit(), 0);
}

TEST(Patience, DoesNotGiveUpForAProgramThatComputes) {
    Patience patience(2000);
    for (int i = 0; i < 100; ++i) {
        polls(patience);
        patience.yielded(4 * kMillisecond);
        patience.rewarded();
    }
    EXPECT_EQ(patience.limit(), 2000);
}

TEST(Patience, LearnsNothingFromAYieldThatBroughtNothing) {
    Patience patience(100);
    polls(patience);
    patience.yielded(20 * kMicrosecond);
    EXPECT_TRUE(patience.exhausted());
    patience.rewarded();
    EXPECT_EQ(patience.limit(), 100);
}

TEST(Patience, OfNoneStaysNone) {
    Patience patience(0);
    patience.yielded(400);
    EXPECT_EQ(patience.limit(), 0);
}

}  // namespace
}  // namespace gantry

// SPDX-License-Identifier: BSD-3-Clause
//
// Steps of what was measured, and how often the slower of two measured ways is looked at.
#include "plan/looks.hpp"

#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

TEST(RateStep, IsWithinFivePerCentOfWhatWasMeasured) {
    for (double rate = 2e6; rate < 1e15; rate *= 1.37) {
        const Step step = step_of(rate, kRateUnit);
        EXPECT_NEAR(value_of(step, kRateUnit) / rate, 1, 0.05) << rate;
    }
    EXPECT_EQ(value_of(0, kRateUnit), 0);
    EXPECT_NE(step_of(0, kRateUnit), 0) << "measured, however slow";
    EXPECT_EQ(step_of(1e300, kRateUnit), 255);
}

TEST(RateStep, StaysWhereItIsWhileMeasurementsDifferByLittle) {
    const Step ten = step_of(10e9, kRateUnit);
    for (const double close : {8e9, 9e9, 11e9, 12.5e9})
        EXPECT_EQ(moved(ten, step_of(close, kRateUnit)), ten);
    for (const double far : {2e9, 7e9, 14e9, 40e9})
        EXPECT_EQ(moved(ten, step_of(far, kRateUnit)), step_of(far, kRateUnit));
    EXPECT_EQ(moved(0, ten), ten) << "the first one counts";
}

Choice choice(Protocol protocol, Nanoseconds taken, Nanoseconds other) {
    Choice choice;
    choice.plan.protocol = protocol;
    choice.plan.expected = taken;
    choice.rejected[0] = {protocol == Protocol::cma ? Protocol::pipeline : Protocol::cma, other,
                          "slower"};
    choice.rejected_count = 1;
    return choice;
}

// The number of the first message that looks.
int first_look(Looks& looks, const Choice& choice) {
    int messages = 1;
    while (messages < 100'000 && !looks.is_due(choice))
        ++messages;
    return messages;
}

TEST(Looks, AreOneMessageInSixtyFourWhereTheTwoWaysAreClose) {
    for (const Protocol protocol : {Protocol::cma, Protocol::pipeline}) {
        Looks looks;
        for (int round = 0; round < 3; ++round)
            EXPECT_EQ(first_look(looks, choice(protocol, 1000, 1500)), 64);
    }
}

TEST(Looks, CostAtMostAThirtySecondOfTheTime) {
    for (const Nanoseconds other : {3000, 10'000, 100'000}) {
        Looks looks;
        const int messages = first_look(looks, choice(Protocol::cma, 1000, other));
        EXPECT_GE(messages * 1000, (other - 1000) * 32);
        EXPECT_LT((messages - 1) * 1000, (other - 1000) * 32) << "and no later than that";
    }
}

// A long message that would cost much does not look because many short ones came before it.
TEST(Looks, CostNoMoreThanTheirShareWhereSizesDiffer) {
    Looks looks;
    for (int i = 0; i < 1000; ++i)
        EXPECT_EQ(looks.is_due(choice(Protocol::pipeline, 1000, 1'000'000)), false);
    EXPECT_TRUE(looks.is_due(choice(Protocol::pipeline, 1000, 2000)));
}

TEST(Looks, AreNoneWhereThereIsNoOtherWay) {
    Looks looks;
    EXPECT_EQ(first_look(looks, choice(Protocol::cma, 1000, 0)), 100'000);
    EXPECT_EQ(first_look(looks, choice(Protocol::ipc, 1000, 2000)), 100'000);
}

}  // namespace
}  // namespace gantry::plan

// SPDX-License-Identifier: BSD-3-Clause
#include "model/rate.hpp"

#include <gtest/gtest.h>

namespace gantry::model {
namespace {

TEST(Rate, ConstantRateTakesTimeInProportionToBytes) {
    const Rate rate(2e9);
    EXPECT_EQ(rate.time(0), 0);
    EXPECT_EQ(rate.time(2000), 1000);
    EXPECT_EQ(rate.time(4 * kMiB), 2 * rate.time(2 * kMiB));
}

TEST(Rate, EmptyCurveTakesNoTime) {
    EXPECT_EQ(Rate().time(kGiB), 0);
    EXPECT_EQ(Rate().peak(), 0);
}

TEST(Rate, TimeIsRoundedUpSoThatAByteIsNeverFree) {
    EXPECT_EQ(Rate(1e12).time(1), 1);
}

TEST(Rate, CurveIsFlatOutsideItsPointsAndBetweenThemInside) {
    const Rate rate({{kKiB, 1e9}, {kMiB, 11e9}});
    EXPECT_DOUBLE_EQ(rate.at(1), 1e9);
    EXPECT_DOUBLE_EQ(rate.at(kGiB), 11e9);
    EXPECT_NEAR(rate.at(32 * kKiB), 6e9, 0.01e9);  // half way on the logarithm of the size
}

}  // namespace
}  // namespace gantry::model

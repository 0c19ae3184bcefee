// SPDX-License-Identifier: BSD-3-Clause
//
// What the progress thread does between two looks: decided without a thread and without a clock.
#include "mpi/engine/vigil.hpp"

#include <gtest/gtest.h>

namespace gantry::mpi {
namespace {

using Next = Vigil::Next;

constexpr Look kNothing{true, 0, false};
constexpr Look kPending{true, 0, true};
constexpr Look kProgramInside{false, 0, false};
constexpr Look kEvent{true, 1, true};

Next after(Vigil& vigil, const Look& look, Nanoseconds now) {
    vigil.looked(look, now);
    return vigil.next();
}

TEST(Vigil, AloneItIsAwakeBetweenMessagesSoThatNobodyHasToWakeIt) {
    Vigil vigil(true, kMillisecond, 0);
    EXPECT_EQ(after(vigil, kEvent, 10), Next::look);
    const Nanoseconds later = 10 + kMillisecond - 1;
    EXPECT_EQ(after(vigil, kNothing, later), Next::watch);
    EXPECT_EQ(after(vigil, kProgramInside, later), Next::watch);
    EXPECT_EQ(after(vigil, kPending, later), Next::look);
    EXPECT_EQ(after(vigil, kNothing, later + 1), Next::sleep);
    EXPECT_EQ(after(vigil, kPending, later + 1), Next::sleep);
}

TEST(Vigil, OnASharedProcessorItRestsBetweenLooksAndSleepsSoon) {
    Vigil vigil(false, kMillisecond, 0);
    EXPECT_EQ(after(vigil, kEvent, 10), Next::look);
    EXPECT_EQ(after(vigil, kNothing, 11), Next::sleep);
    EXPECT_EQ(after(vigil, kPending, 11), Next::rest);
    EXPECT_EQ(after(vigil, kProgramInside, 11), Next::rest);
    EXPECT_EQ(after(vigil, kPending, 10 + Vigil::kAwake), Next::sleep);
}

TEST(Vigil, NapsGrowUntilSomethingHappens) {
    Vigil vigil(false, kMillisecond, 0);
    EXPECT_EQ(vigil.nap(true), Vigil::kFirstNap);
    EXPECT_EQ(vigil.nap(true), 2 * Vigil::kFirstNap);
    for (int i = 0; i < 10; ++i)
        vigil.nap(true);
    EXPECT_EQ(vigil.nap(true), Vigil::kLongestNap);
    EXPECT_EQ(vigil.nap(false), Vigil::kIdleNap);
    vigil.happened(1);
    EXPECT_EQ(vigil.nap(true), Vigil::kFirstNap);
}

}  // namespace
}  // namespace gantry::mpi

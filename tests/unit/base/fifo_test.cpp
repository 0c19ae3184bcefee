// SPDX-License-Identifier: BSD-3-Clause
#include "base/fifo.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace gantry {
namespace {

TEST(FifoTest, KeepsItsOrderWhileItGrowsAndGoesAround) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 random(seed);
        Fifo<int> fifo;
        std::deque<int> expected;
        for (int step = 0; step < 2000; ++step) {
            // Fuller in the first half than in the second.
            if (expected.empty() || random() % 100 < (step < 1000 ? 60u : 40u)) {
                fifo.push(step);
                expected.push_back(step);
            } else {
                EXPECT_EQ(fifo.front(), expected.front());
                EXPECT_EQ(fifo.pop(), expected.front());
                expected.pop_front();
            }
            ASSERT_EQ(fifo.size(), expected.size());
            ASSERT_EQ(fifo.empty(), expected.empty());
            for (std::size_t i = 0; i < expected.size(); ++i)
                ASSERT_EQ(fifo[i], expected[i]) << "seed " << seed << ", step " << step;
        }
    }
}

TEST(FifoTest, WhatItHoldsStaysWhereItIsWhileOthersLeave) {
    Fifo<int> fifo;
    for (int i = 0; i < 10; ++i)
        fifo.push(i);
    int* const last = &fifo[9];
    for (int i = 0; i < 9; ++i)
        EXPECT_EQ(fifo.pop(), i);
    EXPECT_EQ(&fifo.front(), last);
}

}  // namespace
}  // namespace gantry

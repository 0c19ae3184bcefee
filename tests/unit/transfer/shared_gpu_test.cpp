// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/shared_gpu.hpp"

#include <gtest/gtest.h>

namespace gantry::transfer {
namespace {

constexpr Nanoseconds kTurn = 135 * kMicrosecond, kSaving = 7 * kMicrosecond,
                      kCopy = 8 * kMicrosecond;

constexpr SharedGpu::Limits kLimits = {256, 64};

// Messages staged until the next attempt.
int staged_before_attempt(SharedGpu& gpu) {
    int messages = 0;
    while (!gpu.invest(kSaving, kTurn, kSecond))
        ++messages;
    return messages;
}

TEST(SharedGpu, IsTakenWhenTheSavingsPayForATurn) {
    SharedGpu gpu(kLimits);
    EXPECT_EQ(gpu.used(), 0);
    EXPECT_EQ(staged_before_attempt(gpu), static_cast<int>(kTurn / kSaving));
    EXPECT_GT(gpu.used(), 0);
}

TEST(SharedGpu, IsKeptWhileCopiesNeedNoTurnAfterTheFirst) {
    SharedGpu gpu(kLimits);
    staged_before_attempt(gpu);
    gpu.copied(kCopy + kTurn, kCopy, kTurn, 2 * kSecond, true);
    for (int i = 0; i < 10; ++i)
        gpu.copied(kCopy, kCopy, kTurn, 2 * kSecond, true);
    EXPECT_EQ(gpu.used(), 2 * kSecond);
}

TEST(SharedGpu, IsLeftToABusyNeighbourAndTriedMoreSeldom) {
    SharedGpu gpu(kLimits);
    const int first = staged_before_attempt(gpu);
    for (int attempt = 0; attempt < 2; ++attempt) {
        gpu.copied(kCopy + kTurn, kCopy, kTurn, 2 * kSecond, true);
        gpu.copied(kCopy + kTurn, kCopy, kTurn, 2 * kSecond, true);
        EXPECT_EQ(gpu.used(), 0);
        EXPECT_GE(staged_before_attempt(gpu), (2 << attempt) * first);
    }
}

TEST(SharedGpu, IsTriedAgainAfterTheHighestPriceAndCheaplyOnceItIsTrusted) {
    constexpr int kMostTurns = 4, kTrust = 8;
    SharedGpu gpu({kMostTurns, kTrust});
    const int first = staged_before_attempt(gpu);
    for (int attempt = 0; attempt < 5; ++attempt) {
        gpu.copied(kCopy + kTurn, kCopy, kTurn, 2 * kSecond, true);
        gpu.copied(kCopy + kTurn, kCopy, kTurn, 2 * kSecond, true);
        EXPECT_LE(staged_before_attempt(gpu), kMostTurns * (first + 1));
    }
    for (int i = 0; i < kTrust; ++i)
        gpu.copied(kCopy, kCopy, kTurn, 2 * kSecond, true);
    gpu.copied(kCopy + kTurn, kCopy, kTurn, 2 * kSecond, true);  // the price is 1, now 2
    EXPECT_LE(staged_before_attempt(gpu), 2 * (first + 1));
}

TEST(SharedGpu, ACopyThatNobodyWatchedSaysNothing) {
    SharedGpu gpu(kLimits);
    staged_before_attempt(gpu);
    for (int i = 0; i < 10; ++i)
        gpu.copied(kCopy + kSecond, kCopy, kTurn, 2 * kSecond, false);
    EXPECT_EQ(gpu.used(), 2 * kSecond);
}

}  // namespace
}  // namespace gantry::transfer

// SPDX-License-Identifier: BSD-3-Clause
//
// Counts by allocation, against a map that does the same; and that they stay bounded.
#include "plan/use_counts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace gantry::plan {
namespace {

TEST(UseCounts, AreThoseOfAMap) {
    for (const unsigned seed : {1u, 2u, 3u}) {
        std::mt19937_64 random(seed);
        UseCounts counts;
        std::map<std::uint64_t, int> expected;
        // Ids as drivers give them, ids far apart, and none.
        std::vector<std::uint64_t> ids = {0, ~0ull};
        for (int i = 0; i < 500; ++i) {
            ids.push_back(1000 + static_cast<std::uint64_t>(i));
            ids.push_back(random());
            ids.push_back(static_cast<std::uint64_t>(i) << 32);
        }
        for (int step = 0; step < 20'000; ++step) {
            const std::uint64_t id = ids[random() % ids.size()];
            ASSERT_EQ(counts.of(id), expected[id]) << "seed " << seed << ", step " << step;
            if (random() % 4 == 0) {
                counts.forget(id);
                expected[id] = 0;
            } else {
                ASSERT_EQ(counts.count(id), ++expected[id]) << "seed " << seed << ", step " << step;
            }
        }
    }
}

TEST(UseCounts, OfAnAllocationThatWasNeverUsedAreNone) {
    UseCounts counts;
    EXPECT_EQ(counts.of(7), 0);
    counts.forget(7);
    EXPECT_EQ(counts.of(7), 0);
    EXPECT_EQ(counts.count(7), 1);
    EXPECT_EQ(counts.of(8), 0);
}

// Of the first allocation nothing is known once so many others came: memory is bounded.
TEST(UseCounts, AreForgottenBeyondTheBound) {
    UseCounts counts;
    for (std::uint64_t id = 0; id < UseCounts::kRemembered; ++id)
        ASSERT_EQ(counts.count(id), 1);
    EXPECT_EQ(counts.of(0), 1);
    EXPECT_EQ(counts.count(UseCounts::kRemembered), 1);
    EXPECT_EQ(counts.of(0), 0);
    EXPECT_EQ(counts.of(UseCounts::kRemembered), 1);
}

// What was forgotten makes room when there is need of it: others are kept.
TEST(UseCounts, ThatWereForgottenMakeRoom) {
    UseCounts counts;
    EXPECT_EQ(counts.count(1), 1);
    for (std::uint64_t id = 2; id < 10 * UseCounts::kRemembered; ++id) {
        ASSERT_EQ(counts.count(id), 1);
        counts.forget(id);
    }
    EXPECT_EQ(counts.of(1), 1);
}

}  // namespace
}  // namespace gantry::plan

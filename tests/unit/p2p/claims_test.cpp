// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/claims.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace gantry::p2p {
namespace {

TEST(Claims, TheFirstOfTheTwoHasIt) {
    std::array<std::uint32_t, 1024> words{};
    Claims claims;
    const std::uint32_t number = claims.take(words.data(), 7);
    ASSERT_NE(number, 0u);
    EXPECT_TRUE(claim(&words[number - 1], 7, Claimant::receiver));
    EXPECT_FALSE(claim(&words[number - 1], 7, Claimant::sender));
    EXPECT_FALSE(claim(&words[number - 1], 7, Claimant::receiver));
}

TEST(Claims, ALateAttemptMissesTheNextMessage) {
    std::array<std::uint32_t, 1024> words{};
    Claims claims;
    const std::uint32_t number = claims.take(words.data(), 7);
    claims.give_back(number);
    ASSERT_EQ(claims.take(words.data(), 8), number);
    EXPECT_FALSE(claim(&words[number - 1], 7, Claimant::receiver));
    EXPECT_TRUE(claim(&words[number - 1], 8, Claimant::sender));
}

TEST(Claims, RunOutWithoutHarm) {
    std::array<std::uint32_t, 1024> words{};
    Claims claims;
    std::set<std::uint32_t> seen;
    for (std::uint64_t id = 1; id <= 1024; ++id)
        EXPECT_TRUE(seen.insert(claims.take(words.data(), id)).second);
    EXPECT_EQ(claims.take(words.data(), 2000), 0u);
    EXPECT_EQ(claims.take(nullptr, 1), 0u);
}

}  // namespace
}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of the benchmark that could lie quietly: the check of received data, and the
// statistics.
#include "bench/pattern.hpp"
#include "bench/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gantry::bench {
namespace {

using testing::HasSubstr;

std::vector<std::byte> filled(const Pattern& pattern) {
    std::vector<std::byte> memory(pattern.bytes);
    fill(memory.data(), pattern);
    return memory;
}

TEST(Pattern, IsRecognisedAtEverySize) {
    for (Bytes bytes : {0u, 1u, 7u, 8u, 9u, 63u, 4096u, 100001u}) {
        const Pattern pattern{.bytes = bytes, .sample = 3, .message = 1, .from = 1};
        EXPECT_EQ(mistake(filled(pattern).data(), pattern), std::nullopt) << bytes;
    }
}

TEST(Pattern, NoticesOneWrongByteAnywhereAndNamesIt) {
    const Pattern pattern{.bytes = 1000, .sample = 5, .message = 0, .from = 0};
    for (std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{511}, std::size_t{999}}) {
        auto memory = filled(pattern);
        memory[at] ^= std::byte{1};
        const auto wrong = mistake(memory.data(), pattern);
        ASSERT_TRUE(wrong.has_value()) << at;
        EXPECT_THAT(*wrong, HasSubstr("byte " + std::to_string(at) + " is"));
        EXPECT_THAT(*wrong, HasSubstr("1 of 1000 bytes"));
    }
}

TEST(Pattern, NoticesDataOfAnotherSampleMessageDirectionOrSize) {
    const Pattern pattern{.bytes = 64, .sample = 5, .message = 2, .from = 0};
    for (Pattern other :
         {Pattern{64, 4, 2, 0}, Pattern{64, 5, 3, 0}, Pattern{64, 5, 2, 1}, Pattern{128, 5, 2, 0}})
        EXPECT_TRUE(mistake(filled(other).data(), pattern).has_value());
}

TEST(Pattern, NoticesShiftedData) {
    const Pattern pattern{.bytes = 4096, .sample = 1, .message = 0, .from = 0};
    auto memory = filled({.bytes = 4096 + 8, .sample = 1, .message = 0, .from = 0});
    fill(memory.data(), pattern);
    EXPECT_TRUE(mistake(memory.data() + 8, pattern).has_value());
}

TEST(Median, IsTheMiddleOfTheSamples) {
    EXPECT_DOUBLE_EQ(median({3, 1, 2}).value, 2);
    EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}).value, 2.5);
    EXPECT_EQ(median({}).samples, 0);
}

TEST(Median, StaysWhereItIsWhenOneSampleIsFarOut) {
    EXPECT_DOUBLE_EQ(median({1, 1, 1, 1, 1000}).value, 1);
}

TEST(Median, IntervalHoldsTheTrueMedianAsOftenAsItSays) {
    constexpr int kTrials = 2000;
    std::mt19937_64 engine(7);
    std::exponential_distribution<double> skewed(1.0);
    const double truth = 0.69314718;  // ln 2
    int held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> samples(40);
        for (double& sample : samples)
            sample = skewed(engine);
        const Median found = median(samples);
        held += found.low <= truth && truth <= found.high ? 1 : 0;
    }
    EXPECT_GE(held, kTrials * 94 / 100) << "seed 7";
}

}  // namespace
}  // namespace gantry::bench

// SPDX-License-Identifier: BSD-3-Clause
//
// Items of "external32": what becomes of values at the edges of their external size.
#include "layout/external32.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace gantry::layout {
namespace {

template <class T>
bool round_trip(const ExternalItem& item, T value, T& back) {
    std::array<std::byte, 32> native{}, external{}, again{};
    std::memcpy(native.data(), &value, sizeof value);
    if (!to_external32(item, native.data(), external.data())) return false;
    from_external32(item, external.data(), again.data());
    std::memcpy(&back, again.data(), sizeof back);
    return true;
}

TEST(External32, NarrowIntegersKeepTheirSignAndRefuseWhatDoesNotFit) {
    const ExternalItem item{ExternalForm::integer, 8, 4};
    constexpr long kLeast = std::numeric_limits<std::int32_t>::min();
    constexpr long kMost = std::numeric_limits<std::int32_t>::max();
    for (const long value : {0L, -1L, kLeast, kMost}) {
        long back = 77;
        EXPECT_TRUE(round_trip(item, value, back));
        EXPECT_EQ(back, value);
    }
    for (const long value : {kLeast - 1, kMost + 1, std::numeric_limits<long>::min()}) {
        long back = 0;
        EXPECT_FALSE(round_trip(item, value, back)) << value;
    }
}

TEST(External32, NaturalNumbersHaveNoSign) {
    std::uint64_t back = 0;
    EXPECT_TRUE(round_trip({ExternalForm::natural, 8, 4}, std::uint64_t{0xffffffff}, back));
    EXPECT_EQ(back, 0xffffffffu);
    EXPECT_FALSE(round_trip({ExternalForm::natural, 8, 4}, std::uint64_t{1} << 32, back));
    std::uint32_t character = 0;
    EXPECT_TRUE(round_trip({ExternalForm::natural, 4, 2}, std::uint32_t{0xffff}, character));
    EXPECT_EQ(character, 0xffffu);
    EXPECT_FALSE(round_trip({ExternalForm::natural, 4, 2}, std::uint32_t{0x10000}, character));
}

TEST(External32, ExtendedRealsComeBackAsTheyWere) {
    const ExternalItem item{ExternalForm::extended, sizeof(long double), 16};
    using Limits = std::numeric_limits<long double>;
    for (const long double value : {0.0L, -1.0L / 3, Limits::max(), Limits::min(),
                                    Limits::denorm_min(), Limits::infinity()}) {
        long double back = 1;
        EXPECT_TRUE(round_trip(item, value, back));
        EXPECT_EQ(back, value);
    }
    long double back = 1;
    EXPECT_TRUE(round_trip(item, Limits::quiet_NaN(), back));
    EXPECT_TRUE(std::isnan(back));
}

TEST(External32, EqualItemsFollowEachOther) {
    const std::array<std::uint16_t, 3> values{0x0102, 0x0304, 0x0506};
    std::array<std::byte, 6> external{};
    EXPECT_TRUE(to_external32({ExternalForm::reversed, 2, 2, 3},
                              reinterpret_cast<const std::byte*>(values.data()), external.data()));
    for (std::size_t i = 0; i < external.size(); ++i)
        EXPECT_EQ(external[i], static_cast<std::byte>(i + 1));
}

}  // namespace
}  // namespace gantry::layout

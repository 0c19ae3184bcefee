// SPDX-License-Identifier: BSD-3-Clause
//
// Layouts as one rank tells them to another: what comes out of a description has the same bytes in the
// same order.
#include "rma/layouts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

namespace gantry::rma {
namespace {

using layout::Layout;

// Packs the same buffer by both.
void expect_alike(const Layout& original, std::uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Result<Layout> told = layout_from(describe(original), original.extent);
    ASSERT_TRUE(told.ok()) << told.status().text();
    EXPECT_EQ(told.value().size, original.size);
    EXPECT_EQ(told.value().extent, original.extent);
    EXPECT_EQ(told.value().first, original.first);
    const layout::Span span = layout::span_of(original, 3);
    std::vector<std::uint8_t> buffer(span.bytes()), here(3 * original.size), there(here.size());
    std::iota(buffer.begin(), buffer.end(), std::uint8_t{1});
    layout::pack(original, buffer.data() - span.low, 0, here.size(), here.data());
    layout::pack(told.value(), buffer.data() - span.low, 0, there.size(), there.data());
    EXPECT_EQ(here, there);
}

TEST(Layouts, ADescriptionMakesTheSameLayoutAgain) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        std::mt19937_64 random(seed);
        std::vector<layout::Block> blocks;
        std::ptrdiff_t at = 0;
        for (std::uint64_t left = 1 + random() % 40; left > 0; --left) {
            const Bytes bytes = 1 + random() % (seed % 2 == 0 ? 3 : 9);
            blocks.push_back({at, bytes});
            at += static_cast<std::ptrdiff_t>(bytes + (seed % 3 == 0 ? 4 : random() % 5));
        }
        Layout made = layout::listed_layout(at + 3, blocks);
        if (seed % 4 == 0)  // a form of forms
            made = Layout(layout::repeated(made.form, 1 + random() % 5, at + 11), 7 * at);
        expect_alike(made, seed);
    }
}

TEST(Layouts, ACutOffDescriptionIsRefused) {
    const std::array<layout::Block, 3> blocks{{{0, 4}, {9, 4}, {30, 2}}};
    const Layout made = layout::listed_layout(40, blocks);
    const std::string whole = describe(made);
    for (std::size_t bytes = 1; bytes < whole.size(); ++bytes)
        EXPECT_FALSE(layout_from(std::string_view(whole).substr(0, bytes), 40).ok()) << bytes;
}

TEST(Layouts, EachLayoutIsToldOnce) {
    ToldLayouts told;
    const ToldLayouts::Number first = told.number_of("a", 8), again = told.number_of("a", 8),
                              longer = told.number_of("a", 16);
    EXPECT_TRUE(first.is_new);
    EXPECT_FALSE(again.is_new);
    EXPECT_EQ(first.layout, again.layout);
    EXPECT_TRUE(longer.is_new);
    EXPECT_NE(longer.layout, first.layout);
    EXPECT_NE(first.layout, 0u);  // which stands for one run of bytes
}

TEST(Layouts, APartOfADescriptionWaitsForTheRest) {
    const std::array<layout::Block, 2> blocks{{{0, 4}, {9, 3}}};
    const std::string whole = describe(layout::listed_layout(16, blocks));
    const auto* bytes = reinterpret_cast<const std::byte*>(whole.data());
    HeardLayouts heard;
    wire::Layout part{{}, 5, 0, whole.size(), 16};
    ASSERT_TRUE(heard.hear(part, {bytes, 7}).ok());
    EXPECT_EQ(heard.find(5), nullptr);
    part.offset = 7;
    ASSERT_TRUE(heard.hear(part, {bytes + 7, whole.size() - 7}).ok());
    ASSERT_NE(heard.find(5), nullptr);
    EXPECT_EQ(heard.find(5)->size, 7u);
    EXPECT_EQ(heard.find(5)->extent, 16);
}

}  // namespace
}  // namespace gantry::rma

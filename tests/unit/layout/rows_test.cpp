// SPDX-License-Identifier: BSD-3-Clause
//
// Rows (layout/rows.hpp): few for what is regular, and always the bytes that packing names.
#include "layout/rows.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace gantry::layout {
namespace {

Layout layout_of(std::ptrdiff_t extent, const std::vector<Block>& blocks) {
    return listed_layout(extent, blocks);
}

std::vector<Rows> rows_of(const Layout& layout, Bytes bytes, Bytes first = 0) {
    std::vector<Rows> all;
    RowWalk walk(layout, first, bytes);
    for (Rows rows; walk.next(rows);)
        all.push_back(rows);
    return all;
}

// What packing does, by rows.
void unpack_rows(const Layout& layout, std::byte* buffer, Bytes first, Bytes bytes,
                 const std::byte* packed) {
    for (const Rows& rows : rows_of(layout, bytes, first))
        for (Bytes row = 0; row < rows.count; ++row)
            std::memcpy(buffer + rows.offset + static_cast<std::ptrdiff_t>(row * rows.pitch),
                        packed + rows.packed + row * rows.packed_pitch, rows.width);
}

TEST(Rows, AColumnIsOneSet) {
    std::vector<Block> cells;
    for (std::ptrdiff_t row = 0; row < 100; ++row)
        cells.push_back({row * 800, 8});
    const std::vector<Rows> rows = rows_of(layout_of(99 * 800 + 8, cells), 800);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0], (Rows{0, 0, 8, 100, 800, 8}));
}

TEST(Rows, ElementsWithAHoleAreOneSet) {
    const std::vector<Rows> rows = rows_of(layout_of(24, {{4, 8}}), 50 * 8);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0], (Rows{4, 0, 8, 50, 24, 8}));
}

TEST(Rows, ManyStructuresAreASetForEachMember) {
    const std::vector<Rows> rows = rows_of(layout_of(32, {{0, 4}, {8, 16}}), 1000 * 20);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0], (Rows{0, 0, 4, 1000, 32, 20}));
    EXPECT_EQ(rows[1], (Rows{8, 4, 16, 1000, 32, 20}));
}

TEST(Rows, APartOfAnElementIsTheRest) {
    const std::vector<Rows> rows = rows_of(layout_of(32, {{0, 4}, {8, 16}}), 10 * 20 + 7);
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(rows[2], (Rows{320, 200, 4, 1, 4, 4}));
    EXPECT_EQ(rows[3], (Rows{328, 204, 3, 1, 3, 3}));
}

TEST(Rows, WhatGoesDownIsOneRowEach) {
    EXPECT_EQ(rows_of(layout_of(0, {{16, 4}, {8, 4}, {0, 4}}), 12).size(), 3u);
    EXPECT_EQ(rows_of(layout_of(-8, {{0, 4}}), 16).size(), 4u);
}

TEST(Rows, OneRunIsOneRow) {
    const std::vector<Rows> rows = rows_of(layout_of(12, {{100, 12}}), 1200);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0], (Rows{100, 0, 1200, 1, 1200, 1200}));
}

TEST(Rows, NothingIsNoRow) {
    EXPECT_TRUE(rows_of(layout_of(8, {{0, 4}}), 0).empty());
    EXPECT_TRUE(rows_of(Layout{}, 0).empty());
}

// Blocks of any order and distance, any number of bytes: as unpack() does it, gaps untouched.
TEST(Rows, AreTheBytesThatUnpackingWrites) {
    for (unsigned seed = 1; seed <= 3000; ++seed) {
        std::mt19937 dice(seed);
        const auto upto = [&dice](unsigned most) {
            return std::uniform_int_distribution<unsigned>(0, most)(dice);
        };
        // Blocks on a grid of 16 bytes, none twice.
        std::vector<std::ptrdiff_t> places(1 + upto(11));
        for (std::size_t i = 0; i < places.size(); ++i)
            places[i] = static_cast<std::ptrdiff_t>(i * (1 + seed % 2)) * 16;
        if (seed % 3 != 0) std::shuffle(places.begin(), places.end(), dice);
        std::vector<Block> blocks;
        const Bytes width = 1 + upto(15);
        for (const std::ptrdiff_t place : places)
            blocks.push_back({place - 32, upto(2) == 0 ? 1 + upto(15) : width});
        const std::ptrdiff_t extent = 16 * 24 * (upto(4) == 0 ? -1 : 1);
        const Layout layout = layout_of(extent, blocks);
        const Bytes count = 1 + upto(6);
        const Bytes bytes =
            upto(3) == 0 ? upto(static_cast<unsigned>(layout.size * count)) : layout.size * count;
        std::vector<std::byte> packed(bytes), expected(16 * 24 * 16, std::byte{7});
        for (Bytes i = 0; i < bytes; ++i)
            packed[i] = static_cast<std::byte>(i * 31 + seed);
        std::vector<std::byte> found = expected;
        const std::ptrdiff_t middle = 16 * 24 * 8;
        unpack(layout, expected.data() + middle, 0, bytes, packed.data());
        // In two pieces, cut anywhere.
        const Bytes cut = upto(static_cast<unsigned>(bytes));
        unpack_rows(layout, found.data() + middle, cut, bytes - cut, packed.data() + cut);
        unpack_rows(layout, found.data() + middle, 0, cut, packed.data());
        ASSERT_EQ(found, expected) << "seed " << seed;
        const Span span = span_of(layout, count);
        ASSERT_GE(span.low,
                  extent < 0 ? -32 + extent * static_cast<std::ptrdiff_t>(count - 1) : -32);
        for (Bytes i = 0; i < found.size(); ++i) {
            const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) - middle;
            if (at < span.low || at >= span.high) {
                ASSERT_EQ(found[i], std::byte{7}) << seed;
            }
        }
    }
}

}  // namespace
}  // namespace gantry::layout

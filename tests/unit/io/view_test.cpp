// SPDX-License-Identifier: BSD-3-Clause
//
// Views (io/view.hpp) against a list of every byte, and what is no view.
#include "io/view.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gantry::io {
namespace {

using layout::Block;

// Blocks one behind the other with random gaps, some of them none.
std::vector<Block> random_blocks(std::mt19937& random, std::ptrdiff_t* extent) {
    std::vector<Block> blocks;
    std::ptrdiff_t at = static_cast<std::ptrdiff_t>(random() % 5);
    for (std::size_t n = 1 + random() % 6; n > 0; --n) {
        const Bytes bytes = 1 + random() % 7;
        blocks.push_back({at, bytes});
        at += static_cast<std::ptrdiff_t>(bytes + random() % 3 * (random() % 9));
    }
    *extent = at + static_cast<std::ptrdiff_t>(random() % 6);
    return blocks;
}

// The place of every data byte of some elements.
std::vector<std::int64_t> places(const std::vector<Block>& blocks, std::ptrdiff_t extent,
                                 std::int64_t displacement, int elements) {
    std::vector<std::int64_t> all;
    for (int element = 0; element < elements; ++element)
        for (const Block& block : blocks)
            for (Bytes byte = 0; byte < block.bytes; ++byte)
                all.push_back(displacement + element * extent + block.offset +
                              static_cast<std::int64_t>(byte));
    return all;
}

TEST(View, RunsAndPlacesAreThoseOfEveryByte) {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::ptrdiff_t extent = 0;
        const std::vector<Block> blocks = random_blocks(random, &extent);
        View view;
        view.displacement = static_cast<std::int64_t>(random() % 100);
        view.filetype = layout::listed_layout(extent, blocks);
        constexpr int kElements = 6;
        const auto all = places(blocks, extent, view.displacement, kElements);
        ASSERT_TRUE(check(view, true).ok());

        const std::size_t first = random() % all.size();
        const std::size_t bytes = 1 + random() % (all.size() - first);
        std::vector<std::int64_t> seen;
        layout::RunWalk runs = view.runs(first, bytes);
        std::int64_t end_of_last = -1;
        for (Block run; runs.next(run);) {
            EXPECT_NE(view.displacement + run.offset, end_of_last) << "two runs that adjoin";
            for (Bytes byte = 0; byte < run.bytes; ++byte)
                seen.push_back(view.displacement + run.offset + static_cast<std::int64_t>(byte));
            end_of_last = seen.back() + 1;
        }
        EXPECT_EQ(seen, std::vector<std::int64_t>(all.begin() + static_cast<long>(first),
                                                  all.begin() + static_cast<long>(first + bytes)));
        for (std::size_t byte = 0; byte < all.size(); ++byte)
            ASSERT_EQ(view.position_of(byte), all[byte]);
        for (std::int64_t place = 0; place < all.back(); ++place) {
            const auto before = std::count_if(all.begin(), all.end(),
                                              [place](std::int64_t each) { return each < place; });
            ASSERT_EQ(view.data_before(place), static_cast<Bytes>(before)) << place;
        }
    }
}

TEST(View, BytesBehindFourGigabytesAreFoundAtOnce) {
    View view;
    view.displacement = 5'000'000'000;
    view.etype_bytes = 4;
    view.filetype = layout::listed_layout(3'000'000'000, std::vector<Block>{{1'000'000'000, 4}});
    ASSERT_TRUE(check(view, true).ok());
    EXPECT_EQ(view.position_of(4'000'000 * 4),
              5'000'000'000 + 4'000'000 * 3'000'000'000 + 1'000'000'000);
    EXPECT_EQ(view.data_before(12'000'000'001), 9u);
    EXPECT_EQ(view.data_before(5'000'000'000), 0u);
}

TEST(View, WhatGoesBackIsNone) {
    View view;
    view.filetype = layout::listed_layout(16, std::vector<Block>{{8, 4}, {0, 4}});
    EXPECT_EQ(check(view, false).error_class(), MPI_ERR_IO);
    view.filetype = layout::listed_layout(16, std::vector<Block>{{-4, 4}, {0, 2}});
    EXPECT_EQ(check(view, false).error_class(), MPI_ERR_IO);
}

// As HDF5 makes them of the chunks of a dataset: it uses one.
TEST(View, AFiletypeLongerThanItsExtentIsUsedOnce) {
    for (const bool writes : {false, true}) {
        View view;
        view.filetype = layout::listed_layout(4, std::vector<Block>{{0, 4}, {8, 4}, {20, 4}});
        ASSERT_TRUE(check(view, writes).ok());
        EXPECT_TRUE(view.one_filetype);
        EXPECT_TRUE(check_reach(view, 0, 12).ok());
        EXPECT_EQ(check_reach(view, 4, 12).error_class(), MPI_ERR_IO);
        EXPECT_EQ(view.position_of(11), 23);
        EXPECT_EQ(view.data_before(1000), 12u);
        EXPECT_EQ(view.data_before(21), 9u);
        // The next one meets it, and may be read.
        view.filetype = layout::listed_layout(8, std::vector<Block>{{0, 4}, {6, 4}});
        ASSERT_TRUE(check(view, writes).ok());
        EXPECT_EQ(view.one_filetype, writes);
    }
}

TEST(View, WhatNamesBytesTwiceIsOnlyRead) {
    View view;
    view.filetype = layout::listed_layout(16, std::vector<Block>{{0, 8}, {4, 8}});
    EXPECT_TRUE(check(view, false).ok());
    EXPECT_EQ(check(view, true).error_class(), MPI_ERR_IO);
}

TEST(View, AFiletypeIsMadeOfEtypes) {
    View view;
    view.etype_bytes = 8;
    view.filetype = layout::contiguous_layout(12);
    EXPECT_EQ(check(view, false).error_class(), MPI_ERR_ARG);
}

TEST(View, AFiletypeWithoutDataSeesNothing) {
    View view;
    view.displacement = 5;
    view.filetype = layout::contiguous_layout(0);
    ASSERT_TRUE(check(view, true).ok());
    EXPECT_TRUE(check_reach(view, 0, 0).ok());
    EXPECT_FALSE(check_reach(view, 0, 1).ok());
    EXPECT_EQ(view.position_of(3), 5);
}

}  // namespace
}  // namespace gantry::io

// SPDX-License-Identifier: BSD-3-Clause
#include "job/rank_list.hpp"

#include <gtest/gtest.h>

namespace gantry::job {
namespace {

using Ranks = std::vector<int>;

TEST(RankList, RanksAndRangesInTheirOrder) {
    EXPECT_EQ(parse_rank_list("2,5-7", 8), (Ranks{2, 5, 6, 7}));
    EXPECT_EQ(parse_rank_list("0", 1), Ranks{0});
}

TEST(RankList, WhatIsNoRankOfTheJobIsLeftOut) {
    EXPECT_EQ(parse_rank_list("", 4), Ranks{});
    EXPECT_EQ(parse_rank_list("1,x,2-9,-3,7,3-1,", 4), (Ranks{1, 2, 3}));
}

}  // namespace
}  // namespace gantry::job

// SPDX-License-Identifier: BSD-3-Clause
//
// When collectives go through a lane, the numbered cells of a node.
#include "coll_questions.hpp"

#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

TEST(CollLane, ALaneIsForShortBlockingCallsOnly) {
    CollQuestion asked = on_node(Collective::allreduce, 8, 4, CollMemory::unknown);
    const auto plan = [&](const CollTuning& tuning) {
        return choose_collective(asked, facts_of("h100"), tuning).plan;
    };
    EXPECT_NE(plan({}).algorithm, Algorithm::lane) << "the call does not block";
    asked.board.lane = true;
    EXPECT_EQ(plan({}).algorithm, Algorithm::lane);
    EXPECT_FALSE(plan({}).meet);
    CollTuning fixed;
    fixed.fixed.fill(Algorithm::cells);
    EXPECT_NE(plan(fixed).algorithm, Algorithm::lane) << "another way is fixed";
    fixed.fixed.fill(Algorithm::lane);
    EXPECT_EQ(plan(fixed).algorithm, Algorithm::lane);
    asked.predefined = false;
    EXPECT_NE(plan({}).algorithm, Algorithm::lane) << "a function of the program";
    asked = on_node(Collective::allreduce, 64 * kMiB, 4, CollMemory::unknown);
    asked.board.lane = true;
    EXPECT_NE(plan({}).algorithm, Algorithm::lane) << "long";
}

// Of two ranks each waits for one other, as with a root; but what both bring must fit into a cell.
TEST(CollLane, WhatAllRanksBringGoesOverALaneUpToACellEach) {
    for (const Collective operation : {Collective::allreduce, Collective::reduce_scatter,
                                       Collective::allgather, Collective::alltoall}) {
        for (const int ranks : {2, 3}) {
            CollQuestion asked = on_node(operation, kCell + 8, ranks, CollMemory::unknown);
            asked.board.lane = true;
            CollTuning fixed;
            fixed.fixed.fill(Algorithm::lane);
            EXPECT_NE(choose_collective(asked, facts_of("h100"), fixed).plan.algorithm,
                      Algorithm::lane)
                << name(operation) << ", " << ranks << " ranks";
        }
    }
}

TEST(CollLane, LimitsOfLanesAreTheUsers) {
    CollQuestion asked = on_node(Collective::scan, 16 * kKiB, 4, CollMemory::unknown);
    asked.board.lane = true;
    CollTuning tuning;
    tuning.fixed.fill(Algorithm::lane);
    const auto goes_there = [&] {
        return choose_collective(asked, facts_of("h100"), tuning).plan.algorithm == Algorithm::lane;
    };
    EXPECT_TRUE(goes_there());
    tuning.lane_ranks = 3;
    EXPECT_FALSE(goes_there());
    tuning.lane_ranks = 4;
    tuning.lane_bytes = 8 * kKiB;
    EXPECT_FALSE(goes_there());
    asked.bytes = 8 * kKiB;
    EXPECT_TRUE(goes_there());
}

}  // namespace
}  // namespace gantry::plan

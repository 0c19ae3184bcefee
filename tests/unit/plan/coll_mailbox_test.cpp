// SPDX-License-Identifier: BSD-3-Clause
//
// When collectives go through a mailbox, the numbered cells of a node.
#include "coll_questions.hpp"

#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

TEST(CollMailbox, ALaneIsForShortBlockingCallsOnly) {
    CollQuestion asked = on_node(Collective::allreduce, 8, 4, CollMemory::unknown);
    const auto plan = [&](const CollTuning& tuning) {
        return choose_collective(asked, facts_of("h100"), tuning).plan;
    };
    EXPECT_NE(plan({}).algorithm, Algorithm::mailbox) << "the call does not block";
    asked.node_segment.mailbox = true;
    EXPECT_EQ(plan({}).algorithm, Algorithm::mailbox);
    EXPECT_FALSE(plan({}).meet);
    CollTuning fixed;
    fixed.fixed.fill(Algorithm::cells);
    EXPECT_NE(plan(fixed).algorithm, Algorithm::mailbox) << "another way is fixed";
    fixed.fixed.fill(Algorithm::mailbox);
    EXPECT_EQ(plan(fixed).algorithm, Algorithm::mailbox);
    asked.predefined = false;
    EXPECT_NE(plan({}).algorithm, Algorithm::mailbox) << "a function of the program";
    asked = on_node(Collective::allreduce, 64 * kMiB, 4, CollMemory::unknown);
    asked.node_segment.mailbox = true;
    EXPECT_NE(plan({}).algorithm, Algorithm::mailbox) << "long";
}

// Of two ranks each waits for one other, as with a root; but what both bring must fit into a cell.
TEST(CollMailbox, WhatAllRanksBringGoesOverALaneUpToACellEach) {
    for (const Collective operation : {Collective::allreduce, Collective::reduce_scatter,
                                       Collective::allgather, Collective::alltoall}) {
        for (const int ranks : {2, 3}) {
            CollQuestion asked = on_node(operation, kCell + 8, ranks, CollMemory::unknown);
            asked.node_segment.mailbox = true;
            CollTuning fixed;
            fixed.fixed.fill(Algorithm::mailbox);
            EXPECT_NE(choose_collective(asked, facts_of("h100"), fixed).plan.algorithm,
                      Algorithm::mailbox)
                << name(operation) << ", " << ranks << " ranks";
        }
    }
}

TEST(CollMailbox, LimitsOfMailboxesAreTheUsers) {
    CollQuestion asked = on_node(Collective::scan, 16 * kKiB, 4, CollMemory::unknown);
    asked.node_segment.mailbox = true;
    CollTuning tuning;
    tuning.fixed.fill(Algorithm::mailbox);
    const auto goes_there = [&] {
        return choose_collective(asked, facts_of("h100"), tuning).plan.algorithm ==
               Algorithm::mailbox;
    };
    EXPECT_TRUE(goes_there());
    tuning.mailbox_ranks = 3;
    EXPECT_FALSE(goes_there());
    tuning.mailbox_ranks = 4;
    tuning.mailbox_bytes = 8 * kKiB;
    EXPECT_FALSE(goes_there());
    asked.bytes = 8 * kKiB;
    EXPECT_TRUE(goes_there());
}

}  // namespace
}  // namespace gantry::plan

// SPDX-License-Identifier: BSD-3-Clause
//
// The published all-to-all: claims 8 and 9 of the table (`gantry reproduce` prints it).
#include "world/harness/published_alltoall.hpp"

#include <gtest/gtest.h>

namespace gantry::world {
namespace {

TEST(PublishedAlltoall, IsFarBelowStagingByHandAndBelowMessages) {
    const PublishedAlltoall table = measure_alltoall(kPublishedBlock);
    EXPECT_GE(table.below(table.user_staging), 0.44);
    EXPECT_GE(table.below(table.messages), 0.31);
    EXPECT_GE(table.below(table.own_messages), 0.0);
    EXPECT_GE(table.gantry, table.ideal) << "faster than the wire: the world is wrong";
}

TEST(PublishedAlltoall, IsNeverAboveStagingByHand) {
    for (const Bytes block : {16 * kKiB, 64 * kKiB}) {
        const PublishedAlltoall table = measure_alltoall(block);
        EXPECT_GE(table.below(table.user_staging), 0.0) << block;
    }
}

}  // namespace
}  // namespace gantry::world

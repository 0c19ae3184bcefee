// SPDX-License-Identifier: BSD-3-Clause
//
// Flags of slots: numbers that only go up, and who still waits for which.
#include "p2p/slot_flags.hpp"

#include <gtest/gtest.h>

namespace gantry::p2p {
namespace {

wire::Chunk chunk_of(std::uint64_t send_id) {
    wire::Chunk chunk{};
    chunk.send_id = send_id;
    return chunk;
}

TEST(SlotFlagNumbers, CountUpForEachUnitAndNoneIsZero) {
    SlotFlags flags;
    EXPECT_EQ(flags.next(3), 1u);
    EXPECT_EQ(flags.next(3), 2u);
    EXPECT_EQ(flags.next(4), 1u);
    EXPECT_EQ(flags.next(kSlotFlags), 0u) << "the unit has none";
}

TEST(SlotFlagNumbers, RaisingNeverGoesBack) {
    SlotFlag flag;
    raise(flag, 4);
    EXPECT_EQ(flag.number, 4u);
    flag.number = 6;  // the device wrote 5, and the next message's 6
    raise(flag, 5);
    EXPECT_EQ(flag.number, 6u);
    flag.number = 0xffffffff;
    raise(flag, 1);  // behind it: 0 is left out
    EXPECT_EQ(flag.number, 1u);
}

TEST(AwaitedFlagsTest, AreTakenOutWhenTheyShowTheirNumber) {
    SlotFlag one, other;
    AwaitedFlags awaited;
    awaited.await({2, &one, 7, chunk_of(11)});
    awaited.await({2, &other, 1, chunk_of(12)});
    EXPECT_FALSE(awaited.next_raised());
    one.number = 6;  // of the message before
    EXPECT_FALSE(awaited.next_raised());
    one.number = 7;
    const auto raised = awaited.next_raised();
    ASSERT_TRUE(raised);
    EXPECT_EQ(raised->chunk.send_id, 11u);
    EXPECT_FALSE(awaited.next_raised());
    EXPECT_FALSE(awaited.empty());
}

TEST(AwaitedFlagsTest, AreDroppedByMessageAndByRank) {
    SlotFlag flag;
    AwaitedFlags awaited;
    for (const int from : {1, 2})
        for (const std::uint64_t id : {5u, 6u})
            awaited.await({from, &flag, 1, chunk_of(id)});
    flag.number = 1;
    awaited.drop(1, 5);
    awaited.drop(2);
    const auto left = awaited.next_raised();
    ASSERT_TRUE(left);
    EXPECT_EQ(left->from, 1);
    EXPECT_EQ(left->chunk.send_id, 6u);
    EXPECT_TRUE(awaited.empty());
}

}  // namespace
}  // namespace gantry::p2p

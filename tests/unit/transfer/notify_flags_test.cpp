// SPDX-License-Identifier: BSD-3-Clause
//
// Flags of slots: numbers that only go up, and who still waits for which.
#include "transfer/notify_flags.hpp"

#include <gtest/gtest.h>

namespace gantry::transfer {
namespace {

wire::Chunk chunk_of(std::uint64_t send_id) {
    wire::Chunk chunk{};
    chunk.send_id = send_id;
    return chunk;
}

std::optional<AwaitedFlags::Raised> next_of(AwaitedFlags& awaited) {
    std::size_t at = 0;
    return awaited.next_raised(at);
}

TEST(SlotFlagNumbers, CountUpAndNoneIsZero) {
    FlagNumbers flags;
    EXPECT_EQ(flags.next(), 1u);
    EXPECT_EQ(flags.next(), 2u);
}

TEST(FlaggedPiecesTest, LieOneBehindTheOtherFromTheNamedUnit) {
    constexpr Bytes unit = kDeviceSlotUnit;
    for (const Bytes last : {Bytes{1}, unit, unit + 1, 3 * unit}) {
        const FlagPieces pieces{7, 6 * unit + last, 3 * unit, 10};
        ASSERT_EQ(pieces.count(), 3);
        Bytes offset = 0;
        std::uint32_t at = 10;
        for (int index = 0; index < 3; ++index) {
            const wire::Chunk piece = pieces.piece(index);
            EXPECT_EQ(piece.send_id, 7u);
            EXPECT_EQ(piece.offset, offset);
            EXPECT_EQ(piece.unit, at);
            EXPECT_EQ(piece.slot_offset, at * unit);
            EXPECT_EQ(piece.units, divide_up(piece.bytes, unit));
            offset += piece.bytes;
            at += piece.units;
        }
        EXPECT_EQ(offset, pieces.bytes);
    }
}

TEST(AwaitedFlagsTest, AreTakenOutWhenTheyShowTheirNumber) {
    Flag one, other;
    AwaitedFlags awaited;
    awaited.await({2, &one, 7, chunk_of(11)});
    awaited.await({2, &other, 1, chunk_of(12)});
    EXPECT_FALSE(next_of(awaited));
    one.number = 6;  // of the message before
    EXPECT_FALSE(next_of(awaited));
    one.number = 7;
    const auto raised = next_of(awaited);
    ASSERT_TRUE(raised);
    EXPECT_EQ(raised->chunk.send_id, 11u);
    EXPECT_FALSE(next_of(awaited));
    EXPECT_FALSE(awaited.empty());
}

TEST(AwaitedFlagsTest, AreDroppedByMessageAndByRank) {
    Flag flag;
    AwaitedFlags awaited;
    for (const int from : {1, 2})
        for (const std::uint64_t id : {5u, 6u})
            awaited.await({from, &flag, 1, chunk_of(id)});
    flag.number = 1;
    awaited.drop(1, 5);
    awaited.drop(2);
    const auto left = next_of(awaited);
    ASSERT_TRUE(left);
    EXPECT_EQ(left->from, 1);
    EXPECT_EQ(left->chunk.send_id, 6u);
    EXPECT_TRUE(awaited.empty());
}

TEST(AwaitedFlagsTest, OfAReceiveThatFailedGoTheWayOfChunks) {
    Flag flag;
    flag.number = 1;
    // Only told apart by their addresses.
    FlagWaiter waiters[2];
    FlagWaiter* const one = &waiters[0];
    FlagWaiter* const two = &waiters[1];
    AwaitedFlags awaited;
    awaited.await({1, &flag, 1, chunk_of(5), one});
    awaited.await({1, &flag, 1, chunk_of(6), two});
    awaited.disown(*one);
    const auto first = next_of(awaited);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->chunk.send_id, 5u);
    EXPECT_EQ(first->waiter, nullptr);
    const auto second = next_of(awaited);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->waiter, two);
}

wire::Chunk flowing(Bytes bytes) {
    wire::Chunk chunk = chunk_of(5);
    chunk.bytes = bytes;
    return chunk;
}

void come(Flag* flags, Bytes piece, std::uint32_t number) {
    flags[piece / transport::kPiecesOfSlotUnit].pieces[piece % transport::kPiecesOfSlotUnit] =
        number;
}

TEST(AwaitedFlagsTest, WhatFlowsIsToldInOrderAsItComes) {
    Flag flags[2];
    FlagWaiter of;
    FlagWaiter* const receive = &of;
    constexpr Bytes bytes = 6 * kCutThroughPiece + 100;
    AwaitedFlags awaited;
    awaited.await({1, flags, 3, flowing(bytes), receive, true, kCutThroughPiece});
    EXPECT_FALSE(next_of(awaited));
    come(flags, 1, 3);  // not the first one
    come(flags, 0, 2);  // of the message before
    EXPECT_FALSE(next_of(awaited));
    come(flags, 0, 3);
    auto part = next_of(awaited);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->offset, 0u);
    EXPECT_EQ(part->bytes, 2 * kCutThroughPiece);
    EXPECT_FALSE(part->all);
    EXPECT_FALSE(next_of(awaited));
    for (const Bytes piece : {2, 3, 4, 5, 6})
        come(flags, piece, 3);
    part = next_of(awaited);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->offset, 2 * kCutThroughPiece);
    EXPECT_EQ(part->bytes, bytes - 2 * kCutThroughPiece);
    // Nobody waits for the sender's processor, which raises the number.
    EXPECT_TRUE(part->all);
    EXPECT_TRUE(awaited.empty());
}

// What no kernel told of the sender does.
TEST(AwaitedFlagsTest, TheRestOfWhatFlowsMayComeWithTheNumberOfAllOfIt) {
    Flag flags[2];
    FlagWaiter of;
    FlagWaiter* const receive = &of;
    AwaitedFlags awaited;
    awaited.await({1, flags, 3, flowing(7 * kCutThroughPiece), receive, true, kCutThroughPiece});
    come(flags, 0, 3);
    ASSERT_TRUE(next_of(awaited));
    flags[0].number = 3;
    const auto rest = next_of(awaited);
    ASSERT_TRUE(rest);
    EXPECT_EQ(rest->offset, kCutThroughPiece);
    EXPECT_EQ(rest->bytes, 6 * kCutThroughPiece);
    EXPECT_TRUE(rest->all);
    EXPECT_TRUE(awaited.empty());
}

TEST(AwaitedFlagsTest, WhatFlowsIsToldInPartsThatAreLargeEnough) {
    Flag flags[2];
    FlagWaiter of;
    FlagWaiter* const receive = &of;
    constexpr Bytes bytes = 7 * kCutThroughPiece;
    AwaitedFlags awaited;
    awaited.await({1, flags, 3, flowing(bytes), receive, true, kCutThroughPiece});
    awaited.tell_more(*receive, 4 * kCutThroughPiece);
    for (const Bytes piece : {0, 1, 2})
        come(flags, piece, 3);
    EXPECT_FALSE(next_of(awaited));
    come(flags, 3, 3);
    auto part = next_of(awaited);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->bytes, 4 * kCutThroughPiece);
    for (const Bytes piece : {4, 5})
        come(flags, piece, 3);
    EXPECT_FALSE(next_of(awaited));
    come(flags, 6, 3);  // the rest
    part = next_of(awaited);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->offset, 4 * kCutThroughPiece);
    EXPECT_EQ(part->bytes, 3 * kCutThroughPiece);
}

// Nobody takes parts of it any more: all of it goes back, once.
TEST(AwaitedFlagsTest, WhatFlowsIntoAReceiveThatFailedIsAChunk) {
    Flag flags[1];
    FlagWaiter of;
    FlagWaiter* const receive = &of;
    AwaitedFlags awaited;
    awaited.await({1, flags, 3, flowing(3 * kCutThroughPiece), receive, true, kCutThroughPiece});
    come(flags, 0, 3);
    ASSERT_TRUE(next_of(awaited));
    awaited.disown(*receive);
    come(flags, 1, 3);
    EXPECT_FALSE(next_of(awaited));
    come(flags, 2, 3);
    const auto all = next_of(awaited);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->waiter, nullptr);
    EXPECT_EQ(all->chunk.bytes, 3 * kCutThroughPiece);
}

}  // namespace
}  // namespace gantry::transfer

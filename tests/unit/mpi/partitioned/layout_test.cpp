// SPDX-License-Identifier: BSD-3-Clause
//
// How partitions are put together into messages that fit both sides.
#include "mpi/partitioned/layout.hpp"

#include <gtest/gtest.h>

namespace gantry::mpi {
namespace {

// What holds of each: units and groups cover all bytes, one behind the other, without gaps.
void expect_sound(const PartitionLayout& layout, std::uint32_t partitions, Bytes partition_bytes,
                  Bytes element) {
    EXPECT_EQ(layout.bytes, partitions * partition_bytes);
    Bytes at = 0;
    std::uint32_t counted = 0, unit = 0;
    for (std::uint32_t group = 0; group < layout.groups; ++group) {
        EXPECT_EQ(layout.first_unit(group), unit);
        EXPECT_GT(layout.units_in(group), 0u);
        for (; unit < layout.end_unit(group); ++unit) {
            EXPECT_EQ(layout.group_of(unit), group);
            EXPECT_EQ(layout.unit_begin(unit), at);
            at = layout.unit_end(unit);
            if (element > 0) {
                EXPECT_EQ(at % element, 0u);
            }
            if (partition_bytes > 0) {
                EXPECT_EQ(at % partition_bytes, 0u);
            }
            counted += layout.partitions_of(unit, partitions);
        }
    }
    EXPECT_EQ(unit, layout.units);
    EXPECT_EQ(at, layout.bytes);
    EXPECT_EQ(counted, partitions);
    for (std::uint32_t partition = 0; partition < partitions && partition_bytes > 0; ++partition) {
        const std::uint32_t mine = layout.unit_of_partition(partition);
        EXPECT_EQ(layout.unit_at(partition * partition_bytes), mine);
        EXPECT_LE(layout.unit_begin(mine), partition * partition_bytes);
        EXPECT_GE(layout.unit_end(mine), (partition + 1) * partition_bytes);
    }
}

TEST(PartitionLayout, LargePartitionsAreMessagesByThemselves) {
    const PartitionLayout layout = lay_out(7, 100'000, 4, 32'768);
    EXPECT_EQ(layout.groups, 7u);
    EXPECT_EQ(layout.units_per_group, 1u);
    expect_sound(layout, 7, 100'000, 4);
}

TEST(PartitionLayout, SmallPartitionsShareAMessage) {
    const PartitionLayout layout = lay_out(100, 1000, 4, 32'768);
    EXPECT_EQ(layout.units, 100u);
    EXPECT_EQ(layout.units_per_group, 33u);
    EXPECT_EQ(layout.groups, 4u);
    expect_sound(layout, 100, 1000, 4);
}

TEST(PartitionLayout, UnitsEndWithAnElementOfTheReceiver) {
    // 12 bytes are the least that 4-byte partitions and 6-byte elements have in common.
    const PartitionLayout layout = lay_out(9, 4, 6, 0);
    EXPECT_EQ(layout.partitions_per_unit, 3u);
    EXPECT_EQ(layout.units, 3u);
    expect_sound(layout, 9, 4, 6);
    // Of elements that no partition but the last ends with, all is one message.
    EXPECT_EQ(lay_out(9, 4, 36, 0).units, 1u);
    expect_sound(lay_out(9, 4, 36, 0), 9, 4, 36);
}

TEST(PartitionLayout, NothingIsOneMessageToo) {
    EXPECT_EQ(lay_out(0, 0, 4, 32'768).groups, 1u);
    EXPECT_EQ(lay_out(5, 0, 4, 32'768).units, 1u);
    expect_sound(lay_out(5, 0, 4, 32'768), 5, 0, 4);
}

TEST(PartitionLayout, ReceivesToPostAreBounded) {
    const PartitionLayout layout = lay_out(1'000'000, 8, 8, 0);
    EXPECT_LE(layout.groups, 4096u);
    EXPECT_EQ(layout.units, 1'000'000u);
    expect_sound(layout, 1'000'000, 8, 8);
}

}  // namespace
}  // namespace gantry::mpi

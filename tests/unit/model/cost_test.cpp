// SPDX-License-Identifier: BSD-3-Clause
//
// The cost functions, and that the built-in H200 gives back the figures it was written from (within
// 10 %).
#include "model/cost.hpp"

#include <gtest/gtest.h>

namespace gantry::model {
namespace {

Machine machine(const char* name) {
    return load(name).value();
}

double microseconds(Nanoseconds time) {
    return static_cast<double>(time) / 1000;
}

TEST(Cost, LoneCopyTakesLatencyPlusBytes) {
    const Gpu gpu = machine("c2050-qdr").gpu;
    const Work work{Operation::d2h, 5500000, 1, 0};
    const Interval interval = place(gpu, work, 1000, 0);
    EXPECT_EQ(interval.end, 1000 + gpu.d2h.latency + kMillisecond);
}

TEST(Cost, CopiesInARowPayTheGapAndNotTheLatency) {
    const Gpu gpu = machine("h200").gpu;
    const Work work{Operation::d2h, 64 * kKiB, 1, 0};
    const Interval first = place(gpu, work, 0, 0);
    const Interval second = place(gpu, work, 0, first.end);
    EXPECT_EQ(second.start, first.end);
    EXPECT_EQ(second.end - first.end, gpu.d2h.gap + gpu.d2h.rate.time(work.bytes));
}

TEST(Cost, OneCopyEngineServesBothDirections) {
    Gpu gpu = machine("h200").gpu;
    const auto shared = [&gpu](Operation operation) {
        return engine_of(gpu, operation) == engine_of(gpu, Operation::d2h);
    };
    for (const Operation in : {Operation::h2d, Operation::h2d_2d, Operation::pageable_h2d})
        EXPECT_FALSE(shared(in));
    gpu.copy_engines = 1;
    for (const Operation in : {Operation::h2d, Operation::h2d_2d, Operation::pageable_h2d})
        EXPECT_TRUE(shared(in));
    for (const Operation other : {Operation::d2d, Operation::peer, Operation::kernel})
        EXPECT_FALSE(shared(other));
}

TEST(Cost, FurtherCopiesOfOneCallPayLessThanTheGap) {
    Gpu gpu = machine("h100").gpu;
    const Work further{Operation::peer_get, kMiB, 1, 0, true};
    const Nanoseconds bytes = gpu.peer_get.rate.time(kMiB);
    EXPECT_EQ(place(gpu, further, 0, 0).end, gpu.calls.further_copy + bytes);
    gpu.calls.further_copy = 10 * gpu.peer_get.gap;
    EXPECT_EQ(place(gpu, further, 0, 0).end, gpu.peer_get.gap + bytes);
}

TEST(Cost, RowsOfATwoDimensionalCopyAddUp) {
    const Gpu gpu = machine("c2050-qdr").gpu;
    EXPECT_EQ(engine_time(gpu, {Operation::d2h, 4096, 101, 0}) -
                  engine_time(gpu, {Operation::d2h, 4096, 1, 0}),
              static_cast<Nanoseconds>(100 * gpu.d2h.row));
}

TEST(Cost, TurnIsPaidAfterAnotherProcessOnly) {
    const Gpu gpu = machine("h200").gpu;
    const Work kernel{Operation::kernel, 0, 1, 1};
    EXPECT_EQ(turn_cost(gpu, kernel, 1, -1), 0);
    EXPECT_EQ(turn_cost(gpu, kernel, 1, 1), 0);
    EXPECT_EQ(turn_cost(gpu, kernel, 1, 2), gpu.turn);
}

TEST(Cost, SmallHostToDeviceCopiesNeedATurnUnlessTwoDimensional) {
    const Gpu gpu = machine("h200").gpu;
    EXPECT_TRUE(needs_turn(gpu, {Operation::h2d, 8, 1, 0}));
    EXPECT_FALSE(needs_turn(gpu, {Operation::h2d, 32 * kKiB, 1, 0}));
    EXPECT_FALSE(needs_turn(gpu, {Operation::h2d_2d, 8, 2, 0}));
    EXPECT_TRUE(needs_turn(gpu, {Operation::pageable_h2d, 8, 1, 0}));
    EXPECT_FALSE(needs_turn(gpu, {Operation::pageable_h2d, 8, 2, 0}));
    EXPECT_FALSE(needs_turn(gpu, {Operation::pageable_h2d, 128 * kKiB, 1, 0}));
    EXPECT_FALSE(needs_turn(gpu, {Operation::d2h, 8, 1, 0}));
    EXPECT_TRUE(needs_turn(gpu, {Operation::d2d, 8, 1, 0}));
}

TEST(Cost, LinkIsHeldForCostAndBytesAndLatencyOverlaps) {
    const Link link = machine("c2050-qdr").network;
    const Carried first = carry(link, Transfer::put, kMiB, 0, 0, 0);
    const Carried second = carry(link, Transfer::put, kMiB, 0, first.left, first.arrived);
    EXPECT_EQ(first.arrived - first.left, link.latency);
    EXPECT_EQ(second.left - first.left, link.put_cost + link.rate.time(kMiB + link.header));
}

TEST(Cost, TwoSendersShareTheReceiversLink) {
    const Link link = machine("c2050-qdr").network;
    const Carried one = carry(link, Transfer::put, kMiB, 0, 0, 0);
    const Carried other = carry(link, Transfer::put, kMiB, 0, 0, one.arrived);
    EXPECT_EQ(other.arrived - one.arrived, link.rate.time(kMiB + link.header));
}

// Measured on an H200: device to host and back, a copy alone.
TEST(H200, CopiesThroughThePcieBusTakeTheMeasuredTimes) {
    const Gpu gpu = machine("h200").gpu;
    EXPECT_NEAR(microseconds(place(gpu, {Operation::d2h, kMiB, 1, 0}, 0, 0).end), 26.6, 2.66);
    EXPECT_NEAR(microseconds(place(gpu, {Operation::d2h, 4 * kMiB, 1, 0}, 0, 0).end), 83, 8.3);
}

// Section 1.2: one put to another GPU.
TEST(H200, PutsToAnotherGpuTakeTheMeasuredTimes) {
    const Gpu gpu = machine("h200").gpu;
    EXPECT_NEAR(microseconds(place(gpu, {Operation::peer, 8, 1, 0}, 0, 0).end), 7.3, 0.7);
    EXPECT_NEAR(microseconds(place(gpu, {Operation::peer, kMiB, 1, 0}, 0, 0).end), 10.4, 1.0);
    EXPECT_NEAR(microseconds(place(gpu, {Operation::peer, 4 * kMiB, 1, 0}, 0, 0).end), 18.5, 1.8);
    EXPECT_NEAR(microseconds(place(gpu, {Operation::peer, 64 * kMiB, 1, 0}, 0, 0).end), 178, 17.8);
}

// Section 1.1: the price of a turn, at 8 B and at 4 MiB.
TEST(H200, CopyAfterAnotherProcessTakesTheMeasuredTurn) {
    const Gpu gpu = machine("h200").gpu;
    EXPECT_NEAR(microseconds(place(gpu, {Operation::d2d, 8, 1, 0}, 0, 0, gpu.turn).end), 148, 14.8);
    EXPECT_NEAR(microseconds(place(gpu, {Operation::d2d, 4 * kMiB, 1, 0}, 0, 0, gpu.turn).end), 148,
                14.8);
    EXPECT_NEAR(microseconds(place(gpu, {Operation::d2d, 4 * kMiB, 1, 0}, 0, 0).end), 12.2, 1.2);
}

// Section 1.5: 4 MiB through host memory in uniform chunks, two copy engines side by side. 64 KiB
// chunks are far worse than 1 MiB.
TEST(H200, ChunkSizeOfAStagedTransferMattersAsMeasured) {
    const Gpu gpu = machine("h200").gpu;
    const auto staged = [&gpu](Bytes chunk) {
        Nanoseconds out_free = 0, in_free = 0;
        for (Bytes at = 0; at < 4 * kMiB; at += chunk) {
            out_free = place(gpu, {Operation::d2h, chunk, 1, 0}, 0, out_free).end;
            in_free = place(gpu, {Operation::h2d, chunk, 1, 0}, out_free, in_free).end;
        }
        return microseconds(in_free);
    };
    EXPECT_NEAR(staged(kMiB), 119, 12);
    EXPECT_NEAR(staged(64 * kKiB), 336, 34);
    EXPECT_NEAR(staged(32 * kKiB), 577, 58);
    EXPECT_NEAR(staged(4 * kMiB), 168, 17);
}

}  // namespace
}  // namespace gantry::model

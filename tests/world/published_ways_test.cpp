// SPDX-License-Identifier: BSD-3-Clause
//
// Vectors, GPUDirect RDMA and CUDA IPC: rows 6, 7, 12 and 13 of the published figures
// (`gantry reproduce` prints them).
#include "world/harness/published_ways.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gantry::world {
namespace {

double lower(Nanoseconds time, Nanoseconds baseline) {
    return 1 - static_cast<double>(time) / static_cast<double>(baseline);
}

TEST(PublishedVectors, AreFarBelowTheStridedCopyAndLevelWithThePipelineByHand) {
    const PublishedVectors times = measure_vectors(4);
    EXPECT_GE(lower(times.gantry, times.strided_copy), 0.88);
    EXPECT_GE(lower(times.gantry, times.by_hand), -0.05);
}

TEST(PublishedGpuDirect, HalvesSmallLatencyAndLosesNothingWhereTheCardReadsSlowly) {
    const std::vector<TwoPaths> times = measure_gpudirect();
    EXPECT_GE(lower(times.front().with, times.front().without), 0.5);
    for (const TwoPaths& each : times)
        EXPECT_LE(each.with, each.without * 105 / 100) << each.bytes << " bytes";
}

TEST(PublishedIpc, BeatsSharedMemoryAndNeverLoses) {
    const std::vector<TwoPaths> times = measure_ipc();
    for (const TwoPaths& each : times)
        EXPECT_LE(each.with, each.without) << each.bytes << " bytes";
    const auto some = std::ranges::find(times, Bytes{256 * kKiB}, &TwoPaths::bytes);
    EXPECT_GE(lower(some->with, some->without), 0.15);
}

}  // namespace
}  // namespace gantry::world

// SPDX-License-Identifier: BSD-3-Clause
//
// What moves a piece of a strided device buffer (plan/strided.hpp), by the figures of an H200.
#include "plan/strided.hpp"

#include "golden/scenes.hpp"

#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

device::GpuFacts h200() {
    device::GpuFacts gpu = test::h200();
    gpu.row_ns = 1.2;
    gpu.row_into_ns = 2.1;
    gpu.kernel_latency = 8100;
    gpu.launch = 3000;
    return gpu;
}

StridedPiece columns(Bytes rows, Bytes width, Bytes pitch, bool out = true) {
    return {rows * width, rows, 1, rows * pitch, out};
}

TEST(StridedWay, WideRowsAreForTheCopyEngineAndNarrowOnesForAKernel) {
    for (const bool out : {true, false}) {
        EXPECT_EQ(strided_way(h200(), columns(1024, 4096, 8192, out), Movers::kernels),
                  StridedWay::rows);
        EXPECT_EQ(strided_way(h200(), columns(4096, 8, 32768, out), Movers::kernels),
                  StridedWay::kernel);
        EXPECT_EQ(strided_way(h200(), columns(64, 8, 512, out), Movers::kernels), StridedWay::rows)
            << "as quick, and no multiprocessor has to be free";
    }
}

TEST(StridedWay, AKernelThatWaitsForItsTurnMustSaveMoreThanThat) {
    EXPECT_EQ(strided_way(h200(), columns(4096, 8, 32768), Movers::kernels_by_turns),
              StridedWay::rows);
    EXPECT_EQ(strided_way(h200(), columns(200000, 8, 32768), Movers::kernels_by_turns),
              StridedWay::kernel);
    // Many sets, whose copies each have their price.
    EXPECT_EQ(
        strided_way(h200(), {128 * 1024, 16384, 128, 18 * kMiB, true}, Movers::kernels_by_turns),
        StridedWay::kernel);
}

TEST(StridedWay, WithoutKernelsDenseDataIsReadWithWhatLiesBetween) {
    const StridedPiece dense{80000, 10000, 10000, 240000, true};
    EXPECT_EQ(strided_way(h200(), dense, Movers::copy_engines), StridedWay::span);
    StridedPiece in = dense;
    in.out = false;  // what lies between belongs to others
    EXPECT_EQ(strided_way(h200(), in, Movers::copy_engines), StridedWay::rows);
    StridedPiece sparse = dense;
    sparse.span = 4 * kGiB;
    EXPECT_EQ(strided_way(h200(), sparse, Movers::copy_engines), StridedWay::rows);
    EXPECT_EQ(strided_way(h200(), dense, Movers::kernels), StridedWay::kernel);
}

}  // namespace
}  // namespace gantry::plan

// SPDX-License-Identifier: BSD-3-Clause
//
// CudaResident: a device that may have a persistent kernel, and device memory that it copies.
#pragma once

#include "cuda_fixture.hpp"

namespace gantry::device {

inline constexpr Nanoseconds kLong = 500 * kMillisecond;  // longer than what a test does in between

struct CudaResident : testing_support::CudaTest {
    static constexpr Bytes kBytes = Bytes{1} << 20;
    CUdeviceptr from = 0, to = 0;
    const char* machine = "h200";  // where it is the quicker way for every kind of copy

    void start(Nanoseconds linger) {
        config.linger = linger;
        config.machine = machine;
        make_device();
        if (from != 0) return;
        from = allocate(kBytes);
        to = allocate(kBytes);
        write(from, pattern(kBytes));
    }
    void TearDown() override {
        if (from != 0) gpu.cuMemFree_v2(from);
        if (to != 0) gpu.cuMemFree_v2(to);
        CudaTest::TearDown();
    }
    Copy order(Bytes at, Bytes bytes) {
        return {testing_support::pointer(to + at), testing_support::pointer(from + at), bytes, 0,
                Engine::fused};
    }
    // Until a kernel stays and takes them. A busy machine may part the copies for long, and copies
    // that lie apart get no such kernel: only the time limit of the test ends this.
    bool copy_until_one_stays() {
        while (!HasFailure())
            if (one_stays_after(1000)) return true;
        return false;
    }
    bool one_stays_after(int copies) {
        for (int i = 0; i < copies; ++i) {
            const std::uint64_t before = cuda->calls().total();
            EXPECT_TRUE(copy(order(0, 8)).ok());
            if (cuda->calls().total() == before) return true;
        }
        return false;
    }
    void clear() {
        CUstream stream = nullptr;
        ASSERT_EQ(gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuMemsetD8Async(to, 0, kBytes, stream), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuStreamSynchronize(stream), CUDA_SUCCESS);
        gpu.cuStreamDestroy_v2(stream);
    }
};

}  // namespace gantry::device

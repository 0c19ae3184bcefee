// SPDX-License-Identifier: BSD-3-Clause
//
// CudaResident: a device that may have a persistent kernel, and device memory that it copies.
#pragma once

#include "cuda_fixture.hpp"

#include <deque>

namespace gantry::device {

inline constexpr Nanoseconds kLong = 500 * kMillisecond;  // longer than what a test does in between

struct CudaResident : testing_support::CudaTest {
    static constexpr Bytes kBytes = Bytes{1} << 20;
    static constexpr Bytes kBehind = 64;  // the buffers' end, which no test looks at
    CUdeviceptr from = 0, to = 0;
    const char* machine = "h200";  // where it is the quicker way for every kind of copy

    void start(Nanoseconds idle_timeout) {
        config.idle_timeout = idle_timeout;
        config.machine = machine;
        make_device();
        if (from != 0) return;
        from = allocate(kBytes + kBehind);
        to = allocate(kBytes + kBehind);
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
            EXPECT_TRUE(copy(order(kBytes, 8)).ok());
            if (cuda->calls().total() == before) return true;
        }
        return false;
    }
    // Does that until a kernel has taken all copies of it. A kernel that a busy machine keeps from
    // running ends, as where another process has the GPU; then the next one is waited for.
    template <class Doing>
    void do_until_taken(Doing doing) {
        const auto others = [this] { return cuda->calls().copies + cuda->calls().launches; };
        while (!HasFatalFailure()) {
            const std::uint64_t before = others();
            doing();
            if (others() == before) return;
            ASSERT_TRUE(copy_until_one_stays());
        }
    }
    void copy_until_taken(const Copy& order) {
        do_until_taken([&] { ASSERT_TRUE(copy(order).ok()); });
    }
    void clear() {
        CUstream stream = nullptr;
        ASSERT_EQ(gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuMemsetD8Async(to, 0, kBytes, stream), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuStreamSynchronize(stream), CUDA_SUCCESS);
        gpu.cuStreamDestroy_v2(stream);
    }
};

// Streams beside the device's, with settings of a test's own.
struct OwnStreams {
    OwnStreams(CUcontext context, const GpuFacts& facts, const cuda::CopySettings& its_settings)
        : driver(testing_support::GpuProgram::library()),
          ready(driver.ready()),
          settings(its_settings),
          streams(driver, {context, ready ? cuda::context_id(driver, context) : 0, 0}, facts,
                  settings) {}
    // The same again and again, until a kernel has taken one, which is the last of them: only the time limit of
    // the test ends this.
    void start_until_taken(const cuda::Order& order, Executor& executor,
                           std::deque<Completion>& started) {
        const auto taken = [this] { return streams.resident().counts().copies; };
        for (bool one = false; !one;) {
            const std::uint64_t before = taken();
            started.emplace_back(executor);
            ASSERT_TRUE(streams.start(order, started.back()));
            one = taken() > before;
            while (!one && !started.back().done())
                streams.progress();
        }
    }
    cuda::Driver driver;
    const bool ready;
    cuda::CopySettings settings;
    cuda::Streams streams;
};

}  // namespace gantry::device

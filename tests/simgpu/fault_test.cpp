// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "harness.hpp"

TEST(Faults, TheNthCallFailsAndOnlyThat) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        CUdeviceptr address = 0;
        ASSERT_EQ(cuda().simgpu_fault("cuMemAlloc_v2:2:2"), 0);
        OK(cuda().cuMemAlloc_v2(&address, 8));
        EXPECT_EQ(cuda().cuMemAlloc_v2(&address, 8), CUDA_ERROR_OUT_OF_MEMORY);
        OK(cuda().cuMemAlloc_v2(&address, 8));
    });
}

TEST(Faults, AStarFailsEveryCallUntilCleared) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        CUevent event = nullptr;
        ASSERT_EQ(cuda().simgpu_fault("cuEventCreate:*:999"), 0);
        for (int call = 0; call < 3; ++call) {
            EXPECT_EQ(cuda().cuEventCreate(&event, 0), CUDA_ERROR_UNKNOWN);
        }
        ASSERT_EQ(cuda().simgpu_fault(nullptr), 0);
        OK(cuda().cuEventCreate(&event, 0));
    });
}

TEST(Faults, NonsenseIsRefused) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        EXPECT_EQ(cuda().simgpu_fault("cuNoSuchThing:1:1"), -1);
        EXPECT_EQ(cuda().simgpu_fault("cuMemAlloc_v2"), -1);
    });
}

TEST(Faults, WithoutADeviceCuInitSaysSo) {
    NEEDS_SIMULATOR();
    simulated_raw("dev=0", [] { EXPECT_EQ(cuda().cuInit(0), CUDA_ERROR_NO_DEVICE); });
    setenv("SIMGPU_FAULT", "no_device", 1);
    simulated_raw("", [] { EXPECT_EQ(cuda().cuInit(0), CUDA_ERROR_NO_DEVICE); });
    unsetenv("SIMGPU_FAULT");
}

TEST(Faults, AFailedOperationSticksToItsContext) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        const CUstream stream = new_stream();
        const CUdeviceptr memory = device_memory(64);
        ASSERT_EQ(cuda().simgpu_fault("operation:2:700"), 0);
        OK(cuda().cuMemsetD8Async(memory, 0, 64, stream));
        OK(cuda().cuStreamSynchronize(stream));
        OK(cuda().cuMemsetD8Async(memory, 0, 64, stream));
        EXPECT_EQ(cuda().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
        CUdeviceptr other = 0;
        EXPECT_EQ(cuda().cuMemAlloc_v2(&other, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
    });
}

TEST(Faults, AnEventCanBeMadeNeverToComplete) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        ASSERT_EQ(cuda().simgpu_fault("event:2:never"), 0);
        const CUstream stream = new_stream();
        const CUevent first = new_event(), second = new_event();
        OK(cuda().cuEventRecord(first, stream));
        OK(cuda().cuEventSynchronize(first));
        OK(cuda().cuEventRecord(second, stream));
        for (int look = 0; look < 1000; ++look) {
            ASSERT_EQ(cuda().cuEventQuery(second), CUDA_ERROR_NOT_READY);
        }
    });
}

TEST(Counters, CountCallsPerEntryPoint) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        unsigned type = 0;
        const CUdeviceptr memory = device_memory(64);
        cuda().simgpu_reset_calls();
        for (int call = 0; call < 3; ++call) {
            OK(cuda().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
        }
        EXPECT_EQ(cuda().simgpu_calls("cuPointerGetAttribute"), 3u);
        EXPECT_EQ(cuda().simgpu_calls("cuMemAlloc_v2"), 0u);
        EXPECT_EQ(cuda().simgpu_calls("*"), 3u);
        EXPECT_EQ(cuda().simgpu_calls("cuNoSuchThing"), UINT64_MAX);
    });
}

TEST(Counters, AreWrittenAtExitWithTheTrace) {
    NEEDS_SIMULATOR();
    const std::string base = testing::TempDir() + "simgpu-" + std::to_string(getpid());
    simulated("counts=" + base + ".counts,trace=" + base + ".trace", [] {
        OK(cuda().cuMemsetD8_v2(device_memory(4096), 0, 4096));
        OK(cuda().cuCtxSynchronize());
    });
    std::ifstream counts(base + ".counts"), trace(base + ".trace");
    const std::string all_counts{std::istreambuf_iterator<char>(counts), {}};
    const std::string all_trace{std::istreambuf_iterator<char>(trace), {}};
    EXPECT_NE(all_counts.find("cuMemAlloc_v2 1\n"), std::string::npos) << all_counts;
    EXPECT_NE(all_trace.find("fill 0 "), std::string::npos) << all_trace;
    std::remove((base + ".counts").c_str());
    std::remove((base + ".trace").c_str());
}

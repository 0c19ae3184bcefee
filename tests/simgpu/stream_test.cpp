// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <thread>

#include "harness.hpp"

namespace {

// A look that races with the device on purpose, where the race detector shall not see it.
__attribute__((no_sanitize("thread"))) char glance(const char* host) {
    return *const_cast<const volatile char*>(host);
}

int word_of(CUdeviceptr address) {
    int value = 0;
    EXPECT_EQ(cuda().cuMemcpyDtoH_v2(&value, address, sizeof value), CUDA_SUCCESS);
    return value;
}

}  // namespace

TEST(Streams, EffectsAreAppliedLateAndOnce) {
    simulated("", [] {
        char* host = pinned_memory(64);
        const CUdeviceptr device = device_memory(64);
        OK(cuda().cuMemsetD8_v2(device, 1, 64));
        OK(cuda().cuCtxSynchronize());
        host[0] = 7;
        const CUstream stream = new_stream();
        gate().close(stream);
        OK(cuda().cuMemcpyDtoHAsync_v2(host, device, 64, stream));
        EXPECT_EQ(glance(host), 7);
        EXPECT_EQ(cuda().cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        gate().open();
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(host[0], 1);
        OK(cuda().cuStreamQuery(stream));
    });
}

TEST(Streams, OperationsOfAStreamRunInOrder) {
    simulated("", [] {
        const CUdeviceptr device = device_memory(4);
        const CUstream stream = new_stream();
        for (unsigned value = 0; value < 200; ++value) {
            OK(cuda().cuMemsetD32Async(device, value, 1, stream));
        }
        int* host = reinterpret_cast<int*>(pinned_memory(4));
        OK(cuda().cuMemcpyDtoHAsync_v2(host, device, 4, stream));
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(*host, 199);
    });
}

TEST(Streams, TheLegacyStreamWaitsForBlockingStreamsOnly) {
    simulated("", [] {
        unsigned* gate = reinterpret_cast<unsigned*>(pinned_memory(4));
        const auto address = reinterpret_cast<CUdeviceptr>(gate);
        const CUstream blocking = new_stream(CU_STREAM_DEFAULT);
        const CUstream free_running = new_stream(CU_STREAM_NON_BLOCKING);
        OK(cuda().cuStreamWaitValue32_v2(free_running, address, 1, CU_STREAM_WAIT_VALUE_EQ));
        OK(cuda().cuMemsetD8_v2(device_memory(1), 0, 1));
        OK(cuda().cuStreamSynchronize(CU_STREAM_LEGACY));  // does not wait for the non-blocking one
        OK(cuda().cuStreamWaitValue32_v2(blocking, address, 1, CU_STREAM_WAIT_VALUE_EQ));
        OK(cuda().cuMemsetD8_v2(device_memory(1), 0, 1));
        EXPECT_EQ(cuda().cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
        std::atomic_ref(*gate).store(1);
        OK(cuda().cuStreamSynchronize(CU_STREAM_LEGACY));
    });
}

TEST(Streams, EveryThreadHasADefaultStreamOfItsOwn) {
    simulated("", [] {
        unsigned long long here = 0, there = 0, again = 0;
        OK(cuda().cuStreamGetId(CU_STREAM_PER_THREAD, &here));
        OK(cuda().cuStreamGetId(CU_STREAM_PER_THREAD, &again));
        CUcontext context = nullptr;
        OK(cuda().cuCtxGetCurrent(&context));
        std::thread([&] {
            OK(cuda().cuCtxPushCurrent_v2(context));
            OK(cuda().cuStreamGetId(CU_STREAM_PER_THREAD, &there));
        }).join();
        EXPECT_EQ(here, again);
        EXPECT_NE(here, there);
    });
}

TEST(Streams, DestroyingABusyStreamLetsItFinish) {
    NEEDS_SIMULATOR();  // a real driver may crash on a destroyed handle
    simulated("", [] {
        char* host = pinned_memory(64);
        const CUdeviceptr device = device_memory(64);
        OK(cuda().cuMemsetD8_v2(device, 9, 64));
        OK(cuda().cuCtxSynchronize());
        const CUstream stream = new_stream();
        gate().close(stream);
        OK(cuda().cuMemcpyDtoHAsync_v2(host, device, 64, stream));
        OK(cuda().cuStreamDestroy_v2(stream));
        EXPECT_EQ(cuda().cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
        gate().open();
        OK(cuda().cuCtxSynchronize());
        EXPECT_EQ(host[63], 9);
    });
}

TEST(Streams, HostFunctionsRunInOrderAndMayNotCallTheDriver) {
    simulated("", [] {
        struct Seen {
            CUdeviceptr device;
            std::atomic<int> calls{0};
            CUresult result = CUDA_SUCCESS;
        } seen{device_memory(4)};
        const CUstream stream = new_stream();
        OK(cuda().cuLaunchHostFunc(
            stream,
            [](void* data) {
                auto& s = *static_cast<Seen*>(data);
                CUcontext context = nullptr;
                s.result = cuda().cuCtxGetCurrent(&context);
                ++s.calls;
            },
            &seen));
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(seen.calls, 1);
        EXPECT_EQ(seen.result, CUDA_ERROR_NOT_PERMITTED);
    });
}

TEST(Events, AWaitBindsTheRecordItFinds) {
    simulated("", [] {
        unsigned* gate = reinterpret_cast<unsigned*>(pinned_memory(8));
        const auto address = reinterpret_cast<CUdeviceptr>(gate);
        const CUstream first = new_stream(), second = new_stream();
        const CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
        OK(cuda().cuEventQuery(event));  // never recorded: complete
        OK(cuda().cuEventRecord(event, first));
        OK(cuda().cuStreamWaitEvent(second, event, 0));
        OK(cuda().cuStreamWaitValue32_v2(first, address, 1, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cuda().cuEventRecord(event, first));  // recorded again, behind the gate
        OK(cuda().cuStreamSynchronize(second));  // waits for the first record only
        EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_NOT_READY);
        std::atomic_ref(*gate).store(1);
        OK(cuda().cuEventSynchronize(event));
    });
}

TEST(Events, ElapsedTimeNeedsTiming) {
    simulated("", [] {
        const CUstream stream = new_stream();
        const CUevent timed = new_event(), silent = new_event(CU_EVENT_DISABLE_TIMING);
        OK(cuda().cuEventRecord(timed, stream));
        OK(cuda().cuEventRecord(silent, stream));
        OK(cuda().cuStreamSynchronize(stream));
        float milliseconds = -1;
        EXPECT_EQ(cuda().cuEventElapsedTime(&milliseconds, timed, silent),
                  CUDA_ERROR_INVALID_HANDLE);
        OK(cuda().cuEventElapsedTime(&milliseconds, timed, timed));
        EXPECT_EQ(milliseconds, 0.0f);
    });
}

TEST(Events, GarbageHandlesAreErrors) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        int nonsense = 0;
        EXPECT_EQ(cuda().cuEventQuery(reinterpret_cast<CUevent>(&nonsense)),
                  CUDA_ERROR_INVALID_HANDLE);
        EXPECT_EQ(cuda().cuStreamQuery(reinterpret_cast<CUstream>(&nonsense)),
                  CUDA_ERROR_INVALID_HANDLE);
        EXPECT_EQ(cuda().cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(&nonsense)),
                  CUDA_ERROR_INVALID_CONTEXT);
        const CUevent event = new_event();
        OK(cuda().cuEventDestroy_v2(event));
        EXPECT_EQ(cuda().cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
    });
}

TEST(StreamMemoryOperations, AWrittenFlagIsSeenWithoutAnyCall) {
    simulated("", [] {
        auto* flag = reinterpret_cast<unsigned*>(pinned_memory(8));
        char* host = pinned_memory(1 << 20);
        const CUdeviceptr device = device_memory(1 << 20);
        const CUstream stream = new_stream();
        OK(cuda().cuMemsetD8Async(device, 42, 1 << 20, stream));
        OK(cuda().cuMemcpyDtoHAsync_v2(host, device, 1 << 20, stream));
        OK(cuda().cuStreamWriteValue32_v2(stream, reinterpret_cast<CUdeviceptr>(flag), 5, 0));
        while (std::atomic_ref(*flag).load(std::memory_order_acquire) != 5) {
        }
        EXPECT_EQ(host[(1 << 20) - 1], 42);
    });
}

TEST(StreamMemoryOperations, WaitsCompareAsDocumented) {
    simulated("", [] {
        const CUdeviceptr device = device_memory(8);
        const CUstream stream = new_stream();
        OK(cuda().cuStreamWriteValue32_v2(stream, device, 0xfffffff0u, 0));
        // 0xfffffff0 - 0xffffffff is negative; minus 0xffffffe0 is not: a signed difference.
        OK(cuda().cuStreamWaitValue32_v2(stream, device, 0xffffffe0u, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cuda().cuStreamWaitValue32_v2(stream, device, 0x10u, CU_STREAM_WAIT_VALUE_AND));
        OK(cuda().cuStreamSynchronize(stream));
        OK(cuda().cuStreamWaitValue32_v2(stream, device, 3u, CU_STREAM_WAIT_VALUE_GEQ));
        EXPECT_EQ(cuda().cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        OK(cuda().cuStreamWriteValue64_v2(new_stream(), device, 3, 0));
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(word_of(device), 3);
        EXPECT_EQ(cuda().cuStreamWriteValue32_v2(stream, device + 1, 0, 0),
                  CUDA_ERROR_INVALID_VALUE);
        int local = 0;
        EXPECT_EQ(
            cuda().cuStreamWriteValue32_v2(stream, reinterpret_cast<CUdeviceptr>(&local), 0, 0),
            CUDA_ERROR_INVALID_VALUE);
    });
}

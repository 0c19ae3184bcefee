// SPDX-License-Identifier: BSD-3-Clause
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "harness.hpp"

TEST(StartUp, NothingWorksBeforeCuInit) {
    simulated_raw("", [] {
        int version = 0, count = 0;
        OK(cuda().cuDriverGetVersion(&version));
        EXPECT_GE(version, 12000);
        EXPECT_EQ(cuda().cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
        OK(cuda().cuInit(0));
        OK(cuda().cuDeviceGetCount(&count));
        if (is_simulator()) {
            EXPECT_EQ(count, 1);
        }
    });
}

TEST(StartUp, AForkedChildHasNoDriver) {
    simulated("", [] {
        const CUdeviceptr device = device_memory(64);
        const pid_t child = fork();
        if (child == 0) {
            int count = 0;
            const bool refused = cuda().cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                                 cuda().cuMemFree_v2(device) == CUDA_ERROR_NOT_INITIALIZED &&
                                 cuda().cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
            _exit(refused ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        OK(cuda().cuMemFree_v2(device));
    });
}

TEST(StartUp, ProcAddressHonoursVersionsAndThreads) {
    simulated_raw("", [] {
        void *old_form = nullptr, *new_form = nullptr, *per_thread = nullptr, *none = nullptr;
        CUdriverProcAddressQueryResult found{};
        OK(cuda().cuGetProcAddress_v2("cuCtxGetDevice", &old_form, 12080, 1, &found));
        OK(cuda().cuGetProcAddress_v2("cuCtxGetDevice", &new_form, 13000, 1, &found));
        EXPECT_EQ(old_form, reinterpret_cast<void*>(cuda().cuCtxGetDevice));
        EXPECT_EQ(new_form, reinterpret_cast<void*>(cuda().cuCtxGetDevice_v2));
        OK(cuda().cuGetProcAddress_v2("cuMemcpyAsync", &per_thread, 12000, 2, &found));
        EXPECT_NE(per_thread, reinterpret_cast<void*>(cuda().cuMemcpyAsync));
        OK(cuda().cuGetProcAddress_v2("cuNoSuchThing", &none, 13000, 1, &found));
        EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
        OK(cuda().cuGetProcAddress_v2("cuMemAllocAsync", &none, 11000, 1, &found));
        EXPECT_EQ(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    });
}

TEST(Devices, KeepTheirIdentityUnderVisibleDevices) {
    CUuuid all[2] = {}, one = {};
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    simulated("dev=2", [&] {
        OK(cuda().cuDeviceGetUuid_v2(&all[0], 0));
        OK(cuda().cuDeviceGetUuid_v2(&all[1], 1));
        EXPECT_EQ(write(ends[1], all, sizeof all), static_cast<ssize_t>(sizeof all));
    });
    if (IsSkipped()) return;  // on a real driver
    ASSERT_EQ(read(ends[0], all, sizeof all), static_cast<ssize_t>(sizeof all));
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    simulated("dev=2", [&] {
        int count = 0;
        OK(cuda().cuDeviceGetCount(&count));
        EXPECT_EQ(count, 1);
        OK(cuda().cuDeviceGetUuid_v2(&one, 0));
        EXPECT_EQ(std::string(one.bytes, 16), std::string(all[1].bytes, 16));
        EXPECT_NE(std::string(one.bytes, 16), std::string(all[0].bytes, 16));
    });
    unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(Contexts, EveryThreadHasAStackOfItsOwn) {
    simulated("dev=2", [] {
        CUcontext mine = nullptr, created = nullptr, seen = nullptr;
        CUdevice device = -1;
        OK(cuda().cuCtxGetCurrent(&mine));
        OK(cuda().cuCtxCreate_v2(&created, 0, 1));
        OK(cuda().cuCtxGetDevice(&device));
        EXPECT_EQ(device, 1);
        std::thread([] {
            CUdeviceptr address = 0;
            EXPECT_EQ(cuda().cuMemAlloc_v2(&address, 1), CUDA_ERROR_INVALID_CONTEXT);
        }).join();
        OK(cuda().cuCtxPopCurrent_v2(&seen));
        EXPECT_EQ(seen, created);
        OK(cuda().cuCtxGetCurrent(&seen));
        EXPECT_EQ(seen, mine);
    });
}

TEST(Contexts, ThePrimaryHandleSurvivesARelease) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        CUcontext first = nullptr, second = nullptr;
        unsigned flags = 0;
        int active = 0;
        OK(cuda().cuCtxGetCurrent(&first));
        const CUdeviceptr lost = device_memory(64);
        OK(cuda().cuDevicePrimaryCtxRelease_v2(0));
        OK(cuda().cuDevicePrimaryCtxGetState(0, &flags, &active));
        EXPECT_EQ(active, 0);
        EXPECT_EQ(cuda().cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        OK(cuda().cuDevicePrimaryCtxRetain(&second, 0));
        EXPECT_EQ(first, second);
        EXPECT_EQ(cuda().cuMemFree_v2(lost), CUDA_ERROR_INVALID_VALUE);  // went with its context
    });
}

TEST(Contexts, EachLifeOfThePrimaryHasAnIdOfItsOwn) {
    simulated("", [] {
        CUcontext context = nullptr;
        OK(cuda().cuCtxGetCurrent(&context));
        unsigned long long before = 0, after = 0;
        OK(cuda().cuCtxGetId(context, &before));
        OK(cuda().cuDevicePrimaryCtxReset_v2(0));
        OK(cuda().cuDevicePrimaryCtxRetain(&context, 0));
        OK(cuda().cuCtxGetId(context, &after));
        EXPECT_NE(before, after);
        OK(cuda().cuDevicePrimaryCtxRelease_v2(0));
    });
}

TEST(Contexts, DestroyTakesStreamsEventsAndMemoryAlong) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        CUcontext context = nullptr;
        OK(cuda().cuCtxCreate_v2(&context, 0, 0));
        const CUstream stream = new_stream();
        const CUevent event = new_event();
        const CUdeviceptr memory = device_memory(100);
        OK(cuda().cuMemsetD8Async(memory, 1, 100, stream));
        OK(cuda().cuCtxDestroy_v2(context));
        EXPECT_EQ(cuda().cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        unsigned type = 0;
        EXPECT_EQ(cuda().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory),
                  CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(Capture, AnUnsafeCallSpoilsACaptureUnlessTheThreadIsRelaxed) {
    simulated("", [] {
        const CUstream captured = new_stream();
        const CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
        OK(cuda().cuEventRecord(event, new_stream()));
        CUstreamCaptureStatus status{};
        CUgraph graph = nullptr;
        // Relaxed, as Gantry calls the driver: nothing happens to the capture.
        OK(cuda().cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        OK(cuda().cuThreadExchangeStreamCaptureMode(&mode));
        EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
        OK(cuda().cuEventSynchronize(event));
        device_memory(64);
        OK(cuda().cuThreadExchangeStreamCaptureMode(&mode));
        OK(cuda().cuStreamIsCapturing(captured, &status));
        EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        // Not relaxed: refused, and the capture is lost.
        EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        OK(cuda().cuStreamIsCapturing(captured, &status));
        EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        EXPECT_EQ(cuda().cuStreamEndCapture(captured, &graph),
                  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        EXPECT_EQ(graph, nullptr);
    });
}

// Blocking streams wait for the legacy one, and it for them: while one is captured it can be asked, and
// waiting for it spoils the capture.
TEST(Capture, WaitingForTheLegacyStreamSpoilsTheCaptureOfABlockingOne) {
    simulated("", [] {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        OK(cuda().cuThreadExchangeStreamCaptureMode(&mode));
        for (const unsigned flags : {0u, static_cast<unsigned>(CU_STREAM_NON_BLOCKING)}) {
            CUstream captured = nullptr;
            OK(cuda().cuStreamCreate(&captured, flags));
            OK(cuda().cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
            const CUresult implicit =
                flags == 0 ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
            CUstreamCaptureStatus status{};
            CUgraph graph = nullptr;
            EXPECT_EQ(cuda().cuStreamIsCapturing(CU_STREAM_LEGACY, &status), implicit);
            OK(cuda().cuStreamIsCapturing(captured, &status));
            EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
            EXPECT_EQ(cuda().cuStreamSynchronize(CU_STREAM_LEGACY), implicit);
            EXPECT_EQ(cuda().cuStreamEndCapture(captured, &graph),
                      flags == 0 ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
            if (graph != nullptr) {
                OK(cuda().cuGraphDestroy(graph));
            }
        }
        OK(cuda().cuThreadExchangeStreamCaptureMode(&mode));
    });
}

TEST(Capture, CapturedOperationsDoNotRun) {
    simulated("", [] {
        const CUdeviceptr memory = device_memory(4);
        OK(cuda().cuMemsetD32_v2(memory, 1, 1));
        const CUstream stream = new_stream();
        CUgraph graph = nullptr;
        OK(cuda().cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(cuda().cuMemsetD32Async(memory, 2, 1, stream));
        OK(cuda().cuStreamEndCapture(stream, &graph));
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(read_back(memory, 1)[0], 1);
        OK(cuda().cuGraphDestroy(graph));
    });
}

TEST(Exit, CallsAfterTearDownAreDeinitialised) {
    // The library's destructor ran before the test program's own atexit handlers of earlier
    // registration: here, a destructor of static storage that the child registers first.
    simulated_raw("leaks=1", [] {
        atexit([] {
            int count = 0;
            const CUresult result = cuda().cuDeviceGetCount(&count);
            if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED) {
                _exit(9);
            }
        });
        OK(cuda().cuInit(0));
    });
}

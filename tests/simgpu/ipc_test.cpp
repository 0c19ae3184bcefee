// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "harness.hpp"

namespace {

CUipcMemHandle export_memory(CUdeviceptr address) {
    CUipcMemHandle handle{};
    EXPECT_EQ(cuda().cuIpcGetMemHandle(&handle, address), CUDA_SUCCESS);
    return handle;
}

CUdeviceptr import_memory(const CUipcMemHandle& handle) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuda().cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
              CUDA_SUCCESS);
    return address;
}

}  // namespace

TEST(Ipc, BothProcessesSeeOneMemory) {
    for (const char* settings : {"", "suballoc=5", "machine=h200,scale=10"}) {
        constexpr std::size_t kBytes = 300000;
        simulated_pair(
            settings,
            [](Channel& other) {
                const CUdeviceptr memory = device_memory(kBytes);
                const std::vector<char> data = pattern(kBytes, 1);
                OK(cuda().cuMemcpyHtoD_v2(memory, data.data(), kBytes));
                OK(cuda().cuCtxSynchronize());
                other.send(export_memory(memory + 1000));  // any address of the allocation
                other.barrier();
                EXPECT_EQ(read_back(memory, kBytes), pattern(kBytes, 2));
                other.barrier();
            },
            [](Channel& other) {
                const CUdeviceptr memory = import_memory(other.receive<CUipcMemHandle>());
                EXPECT_EQ(read_back(memory, kBytes), pattern(kBytes, 1));
                const std::vector<char> data = pattern(kBytes, 2);
                OK(cuda().cuMemcpyHtoD_v2(memory, data.data(), kBytes));
                OK(cuda().cuCtxSynchronize());
                other.barrier();
                EXPECT_EQ(cuda().cuMemcpyHtoD_v2(memory, data.data(), kBytes + 1),
                          CUDA_ERROR_INVALID_VALUE);
                OK(cuda().cuIpcCloseMemHandle(memory));
                other.barrier();
            });
    }
}

TEST(Ipc, AHandleOfThisProcessIsRefused) {
    simulated("", [] {
        const CUipcMemHandle handle = export_memory(device_memory(64));
        CUdeviceptr address = 0;
        EXPECT_EQ(cuda().cuIpcOpenMemHandle_v2(&address, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
    });
}

TEST(Ipc, OpeningTwiceGivesOneAddressAndCounts) {
    simulated_pair(
        "",
        [](Channel& other) {
            other.send(export_memory(device_memory(64)));
            other.barrier();
        },
        [](Channel& other) {
            const CUipcMemHandle handle = other.receive<CUipcMemHandle>();
            const CUdeviceptr first = import_memory(handle);
            EXPECT_EQ(import_memory(handle), first);
            OK(cuda().cuIpcCloseMemHandle(first));
            read_back(first, 64);
            OK(cuda().cuIpcCloseMemHandle(first));
            EXPECT_EQ(cuda().cuIpcCloseMemHandle(first), CUDA_ERROR_INVALID_VALUE);
            other.barrier();
        });
}

TEST(Ipc, AStaleMappingReadsPoisonNotTheNextOwnersData) {
    NEEDS_SIMULATOR();
    simulated_pair(
        "",
        [](Channel& other) {
            const CUdeviceptr memory = device_memory(4096);
            OK(cuda().cuMemsetD8_v2(memory, 1, 4096));
            OK(cuda().cuCtxSynchronize());
            other.send(export_memory(memory));
            other.barrier();
            OK(cuda().cuMemFree_v2(memory));
            const CUdeviceptr next = device_memory(4096);
            EXPECT_EQ(next, memory);  // the address is used again at once
            OK(cuda().cuMemsetD8_v2(next, 2, 4096));
            OK(cuda().cuCtxSynchronize());
            other.barrier();
            other.barrier();
        },
        [](Channel& other) {
            const CUdeviceptr memory = import_memory(other.receive<CUipcMemHandle>());
            EXPECT_EQ(read_back(memory, 1)[0], 1);
            other.barrier();
            other.barrier();
            EXPECT_EQ(read_back(memory, 4096), std::vector<char>(4096, '\xDB'));
            other.barrier();
        });
}

TEST(Ipc, AnotherRunIsAnotherNode) {
    NEEDS_SIMULATOR();
    CUipcMemHandle handle{};
    simulated("", [&] {
        handle = export_memory(device_memory(64));
        CUdeviceptr address = 0;
        handle.reserved[48] = static_cast<char>(handle.reserved[48] ^ 1);  // the run, hashed
        EXPECT_EQ(cuda().cuIpcOpenMemHandle_v2(&address, handle, 1), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(Ipc, GarbageAndUnsharableMemoryAreRefused) {
    simulated("", [] {
        CUipcMemHandle handle{};
        CUdeviceptr address = 0;
        int local = 0;
        EXPECT_EQ(cuda().cuIpcOpenMemHandle_v2(&address, handle, 1), CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(cuda().cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(&local)),
                  CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(
            cuda().cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(pinned_memory(64))),
            CUDA_ERROR_INVALID_VALUE);
    });
    simulated("machine=c2050-qdr,scale=0", [] {  // a machine without IPC
        CUipcMemHandle handle{};
        EXPECT_EQ(cuda().cuIpcGetMemHandle(&handle, device_memory(64)), CUDA_ERROR_NOT_SUPPORTED);
    });
}

TEST(Ipc, EventsOrderWorkOfTwoProcesses) {
    simulated_pair(
        "",
        [](Channel& other) {
            const CUdeviceptr memory = device_memory(4);
            unsigned* gate = reinterpret_cast<unsigned*>(pinned_memory(4));
            const CUevent event = new_event(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
            CUipcEventHandle event_handle{};
            OK(cuda().cuIpcGetEventHandle(&event_handle, event));
            const CUstream stream = new_stream();
            OK(cuda().cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(gate), 1, 0));
            OK(cuda().cuMemsetD32Async(memory, 77, 1, stream));
            OK(cuda().cuEventRecord(event, stream));
            other.send(export_memory(memory));
            other.send(event_handle);
            other.barrier();  // the other one waits on its stream now
            __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
            other.barrier();
        },
        [](Channel& other) {
            const CUdeviceptr memory = import_memory(other.receive<CUipcMemHandle>());
            CUevent event = nullptr;
            OK(cuda().cuIpcOpenEventHandle(&event, other.receive<CUipcEventHandle>()));
            EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_NOT_READY);
            const CUstream stream = new_stream();
            int* host = reinterpret_cast<int*>(pinned_memory(4));
            OK(cuda().cuStreamWaitEvent(stream, event, 0));
            OK(cuda().cuMemcpyDtoHAsync_v2(host, memory, 4, stream));
            other.barrier();
            OK(cuda().cuStreamSynchronize(stream));
            EXPECT_EQ(*host, 77);
            OK(cuda().cuEventQuery(event));
            OK(cuda().cuEventDestroy_v2(event));
            other.barrier();
        });
}

TEST(Ipc, AnInterprocessEventMustNotMeasureTime) {
    simulated("", [] {
        CUevent event = nullptr;
        EXPECT_EQ(cuda().cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(Ipc, ImportedMemoryLiesOnItsOwnersDevice) {
    simulated_pair(
        "dev=2",
        [](Channel& other) {
            CUcontext context = nullptr;
            OK(cuda().cuDevicePrimaryCtxRetain(&context, 1));
            OK(cuda().cuCtxPushCurrent_v2(context));
            other.send(export_memory(device_memory(64)));
            other.barrier();
        },
        [](Channel& other) {
            const CUipcMemHandle handle = other.receive<CUipcMemHandle>();
            CUdeviceptr address = import_memory(handle);
            int ordinal = -1;
            OK(cuda().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                            address));
            EXPECT_EQ(ordinal, 1);
            other.barrier();
        });
}

// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include "harness.hpp"

namespace {

CUmemAllocationProp on_device(CUmemAllocationHandleType type) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = type;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return properties;
}

CUmemoryPool new_pool(CUmemAllocationHandleType type) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = type;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuda().cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    return pool;
}

CUdeviceptr map_at_new_address(CUmemGenericAllocationHandle handle, std::size_t bytes) {
    CUdeviceptr address = 0;
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(cuda().cuMemAddressReserve(&address, bytes, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuda().cuMemMap(address, bytes, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuda().cuMemSetAccess(address, bytes, &access, 1), CUDA_SUCCESS);
    return address;
}

constexpr std::size_t kGranule = 2u << 20;

}  // namespace

TEST(Pools, MemoryOfTheDefaultPoolCannotBeShared) {
    simulated("", [] {
        const CUstream stream = new_stream();
        CUdeviceptr memory = 0;
        OK(cuda().cuMemAllocAsync(&memory, 5000, stream));
        unsigned capable = 9, types = 9;
        unsigned long long context = 9;
        OK(cuda().cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                        memory));
        OK(cuda().cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, memory));
        OK(cuda().cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
        EXPECT_EQ(capable, 0u);
        EXPECT_EQ(types, 0u);
        EXPECT_EQ(context, 0u);
        CUipcMemHandle handle{};
        EXPECT_EQ(cuda().cuIpcGetMemHandle(&handle, memory), CUDA_ERROR_INVALID_VALUE);
        CUmemPoolPtrExportData data{};
        EXPECT_EQ(cuda().cuMemPoolExportPointer(&data, memory), CUDA_ERROR_INVALID_VALUE);
        int fd = -1;
        CUmemoryPool pool = nullptr;
        OK(cuda().cuDeviceGetDefaultMemPool(&pool, 0));
        EXPECT_EQ(cuda().cuMemPoolExportToShareableHandle(
                      &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                  CUDA_ERROR_INVALID_VALUE);
        OK(cuda().cuMemFreeAsync(memory, stream));
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(cuda().cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(Pools, AFreeHappensInStreamOrder) {
    simulated("", [] {
        unsigned* gate = reinterpret_cast<unsigned*>(pinned_memory(4));
        const CUstream stream = new_stream();
        CUdeviceptr memory = 0;
        OK(cuda().cuMemAllocAsync(&memory, 64, stream));
        OK(cuda().cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(gate), 1, 0));
        OK(cuda().cuMemsetD8Async(memory, 1, 64, stream));
        OK(cuda().cuMemFreeAsync(memory, stream));
        unsigned type = 0;
        if (is_simulator()) {  // a real driver forgets it at the call already
            OK(cuda().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
        }
        __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(cuda().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory),
                  CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(Pools, AnExportablePoolTravelsByDescriptor) {
    simulated_pair(
        "",
        [](Channel& other) {
            const CUmemoryPool pool = new_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
            const CUstream stream = new_stream();
            CUdeviceptr memory = 0;
            int fd = -1;
            CUmemPoolPtrExportData data{};
            OK(cuda().cuMemAllocFromPoolAsync(&memory, 4096, pool, stream));
            OK(cuda().cuMemsetD8Async(memory, 5, 4096, stream));
            OK(cuda().cuStreamSynchronize(stream));
            CUipcMemHandle legacy{};
            EXPECT_EQ(cuda().cuIpcGetMemHandle(&legacy, memory), CUDA_ERROR_INVALID_VALUE);
            OK(cuda().cuMemPoolExportToShareableHandle(
                &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
            OK(cuda().cuMemPoolExportPointer(&data, memory));
            other.send_fd(fd);
            other.send(data);
            other.barrier();
        },
        [](Channel& other) {
            const int fd = other.receive_fd();
            auto data = other.receive<CUmemPoolPtrExportData>();
            CUmemoryPool pool = nullptr;
            CUdeviceptr memory = 0;
            OK(cuda().cuMemPoolImportFromShareableHandle(
                &pool, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
            OK(cuda().cuMemPoolImportPointer(&memory, pool, &data));
            EXPECT_EQ(read_back(memory, 4096), std::vector<char>(4096, 5));
            OK(cuda().cuMemFree_v2(memory));
            other.barrier();
        });
}

TEST(VirtualMemory, NeedsMappingAndAccessBeforeUse) {
    simulated("", [] {
        const CUmemAllocationProp properties = on_device(CU_MEM_HANDLE_TYPE_NONE);
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr address = 0;
        OK(cuda().cuMemCreate(&handle, kGranule, &properties, 0));
        OK(cuda().cuMemAddressReserve(&address, 2 * kGranule, 0, 0, 0));
        EXPECT_EQ(cuda().cuMemsetD8_v2(address, 0, 1), CUDA_ERROR_INVALID_VALUE);
        OK(cuda().cuMemMap(address, kGranule, 0, handle, 0));
        EXPECT_EQ(cuda().cuMemsetD8_v2(address, 0, 1), CUDA_ERROR_INVALID_VALUE);
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        OK(cuda().cuMemSetAccess(address, kGranule, &access, 1));
        OK(cuda().cuMemsetD8_v2(address, 3, kGranule));
        EXPECT_EQ(cuda().cuMemsetD8_v2(address, 3, kGranule + 1), CUDA_ERROR_INVALID_VALUE);
        CUipcMemHandle legacy{};
        EXPECT_EQ(cuda().cuIpcGetMemHandle(&legacy, address), CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(cuda().cuMemAddressFree(address, 2 * kGranule), CUDA_ERROR_INVALID_VALUE);
        OK(cuda().cuMemUnmap(address, kGranule));
        OK(cuda().cuMemAddressFree(address, 2 * kGranule));
        OK(cuda().cuMemRelease(handle));
        EXPECT_EQ(cuda().cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(VirtualMemory, ACopyMayCrossAdjacentMappings) {
    simulated("", [] {
        const CUmemAllocationProp properties = on_device(CU_MEM_HANDLE_TYPE_NONE);
        CUmemGenericAllocationHandle handles[2] = {};
        CUdeviceptr address = 0;
        OK(cuda().cuMemAddressReserve(&address, 2 * kGranule, 0, 0, 0));
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        for (std::size_t part = 0; part < 2; ++part) {
            OK(cuda().cuMemCreate(&handles[part], kGranule, &properties, 0));
            OK(cuda().cuMemMap(address + part * kGranule, kGranule, 0, handles[part], 0));
        }
        OK(cuda().cuMemSetAccess(address, 2 * kGranule, &access, 1));
        const std::vector<char> data = pattern(1000, 3);
        OK(cuda().cuMemcpyHtoD_v2(address + kGranule - 500, data.data(), data.size()));
        EXPECT_EQ(read_back(address + kGranule - 500, 1000), data);
        CUdeviceptr base = 0;
        std::size_t bytes = 0;
        OK(cuda().cuMemGetAddressRange_v2(&base, &bytes, address + kGranule));
        EXPECT_EQ(base, address + kGranule);  // one mapping of the two
    });
}

TEST(VirtualMemory, TravelsByDescriptor) {
    simulated_pair(
        "",
        [](Channel& other) {
            const CUmemAllocationProp properties =
                on_device(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
            CUmemGenericAllocationHandle handle = 0, retained = 0;
            int fd = -1;
            OK(cuda().cuMemCreate(&handle, kGranule, &properties, 0));
            const CUdeviceptr address = map_at_new_address(handle, kGranule);
            OK(cuda().cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(address)));
            EXPECT_EQ(retained, handle);
            OK(cuda().cuMemsetD8_v2(address, 8, kGranule));
            OK(cuda().cuCtxSynchronize());
            OK(cuda().cuMemExportToShareableHandle(&fd, handle,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
            other.send_fd(fd);
            other.barrier();
            EXPECT_EQ(read_back(address, 1)[0], 9);
        },
        [](Channel& other) {
            const int fd = other.receive_fd();
            CUmemGenericAllocationHandle handle = 0;
            OK(cuda().cuMemImportFromShareableHandle(
                &handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
            close(fd);
            const CUdeviceptr address = map_at_new_address(handle, kGranule);
            EXPECT_EQ(read_back(address, 1)[0], 8);
            OK(cuda().cuMemsetD8_v2(address, 9, kGranule));
            OK(cuda().cuCtxSynchronize());
            other.barrier();
        });
}

TEST(VirtualMemory, ExportNeedsTheRequestedHandleType) {
    simulated("", [] {
        CUmemAllocationProp properties = on_device(CU_MEM_HANDLE_TYPE_NONE);
        CUmemGenericAllocationHandle handle = 0;
        int fd = -1;
        OK(cuda().cuMemCreate(&handle, kGranule, &properties, 0));
        EXPECT_EQ(cuda().cuMemExportToShareableHandle(&fd, handle,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                  CUDA_ERROR_INVALID_VALUE);
        properties = on_device(CU_MEM_HANDLE_TYPE_FABRIC);
        // A real driver without the service for such handles says NOT_PERMITTED.
        EXPECT_EQ(cuda().cuMemCreate(&handle, kGranule, &properties, 0),
                  is_simulator() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_PERMITTED);
        EXPECT_EQ(
            cuda().cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(device_memory(64))),
            CUDA_ERROR_INVALID_VALUE);
    });
}

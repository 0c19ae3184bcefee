// SPDX-License-Identifier: BSD-3-Clause
// Memory on a GPU that a process does not see: mapped where only CUDA_VISIBLE_DEVICES hides it, refused
// where its device files are kept from the process.
#include <stdlib.h>
#include <unistd.h>

#include "harness.hpp"

namespace {

constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr std::size_t kGranule = std::size_t{2} << 20;

CUmemAllocationProp on_this_device() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    properties.requestedHandleTypes = kDescriptor;
    return properties;
}

void* as_argument(int fd) {
    return reinterpret_cast<void*>(static_cast<intptr_t>(fd));
}

// A process that sees one device only, by this name.
void start_with(const char* visible) {
    CUcontext context = nullptr;
    int count = 0;
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    OK(cuda().cuInit(0));
    OK(cuda().cuDeviceGetCount(&count));
    ASSERT_EQ(count, 1);
    OK(cuda().cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuda().cuCtxSetCurrent(context));
}

// The owner's device 0 is hidden from the importer, who sees device 1.
void share(const std::string& settings, const std::function<void(Channel&)>& export_one,
           const std::function<void(Channel&)>& import_one) {
    simulated_pair_raw(
        settings,
        [&](Channel& other) {
            start_with("0");
            export_one(other);
            other.barrier();
        },
        [&](Channel& other) {
            start_with("GPU-67616e74-7279-2d73-696d-6770752d0002");
            import_one(other);
            other.barrier();
        });
}

void share_legacy(const std::string& settings, CUresult expected) {
    share(
        settings,
        [](Channel& other) {
            const CUdeviceptr memory = device_memory(64);
            OK(cuda().cuMemsetD8_v2(memory, 7, 64));
            OK(cuda().cuCtxSynchronize());
            CUipcMemHandle handle{};
            OK(cuda().cuIpcGetMemHandle(&handle, memory));
            other.send(handle);
        },
        [expected](Channel& other) {
            CUdeviceptr memory = 0;
            const auto handle = other.receive<CUipcMemHandle>();
            ASSERT_EQ(cuda().cuIpcOpenMemHandle_v2(&memory, handle, 1), expected);
            if (expected != CUDA_SUCCESS) return;
            EXPECT_EQ(read_back(memory, 64)[63], 7);
        });
}

void share_virtual(const std::string& settings, CUresult expected) {
    share(
        settings,
        [](Channel& other) {
            const CUmemAllocationProp properties = on_this_device();
            CUmemGenericAllocationHandle handle = 0;
            int fd = -1;
            OK(cuda().cuMemCreate(&handle, kGranule, &properties, 0));
            OK(cuda().cuMemExportToShareableHandle(&fd, handle, kDescriptor, 0));
            other.send_fd(fd);
        },
        [expected](Channel& other) {
            CUmemGenericAllocationHandle handle = 0;
            const int fd = other.receive_fd();
            ASSERT_EQ(cuda().cuMemImportFromShareableHandle(&handle, as_argument(fd), kDescriptor),
                      expected);
            if (expected != CUDA_SUCCESS) return;
            CUdeviceptr address = 0;
            const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
            OK(cuda().cuMemAddressReserve(&address, kGranule, 0, 0, 0));
            OK(cuda().cuMemMap(address, kGranule, 0, handle, 0));
            OK(cuda().cuMemSetAccess(address, kGranule, &access, 1));
            OK(cuda().cuMemsetD8_v2(address, 9, kGranule));
            EXPECT_EQ(read_back(address, 64)[63], 9);
        });
}

void share_pool(const std::string& settings, CUresult expected) {
    share(
        settings,
        [](Channel& other) {
            CUmemPoolProps properties{};
            properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
            properties.handleTypes = kDescriptor;
            properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
            CUmemoryPool pool = nullptr;
            CUdeviceptr memory = 0;
            int fd = -1;
            CUmemPoolPtrExportData data{};
            const CUstream stream = new_stream();
            OK(cuda().cuMemPoolCreate(&pool, &properties));
            OK(cuda().cuMemAllocFromPoolAsync(&memory, 4096, pool, stream));
            OK(cuda().cuStreamSynchronize(stream));
            OK(cuda().cuMemPoolExportToShareableHandle(&fd, pool, kDescriptor, 0));
            OK(cuda().cuMemPoolExportPointer(&data, memory));
            other.send_fd(fd);
            other.send(data);
        },
        [expected](Channel& other) {
            const int fd = other.receive_fd();
            auto data = other.receive<CUmemPoolPtrExportData>();
            CUmemoryPool pool = nullptr;
            CUdeviceptr memory = 0;
            ASSERT_EQ(
                cuda().cuMemPoolImportFromShareableHandle(&pool, as_argument(fd), kDescriptor, 0),
                expected);
            if (expected != CUDA_SUCCESS) return;
            OK(cuda().cuMemPoolImportPointer(&memory, pool, &data));
            OK(cuda().cuMemsetD8_v2(memory, 3, 4096));
            EXPECT_EQ(read_back(memory, 4096)[4095], 3);
        });
}

}  // namespace

TEST(Hidden, MemoryOfEveryKindIsMappedWhereTheVariableHidesItsGpu) {
    share_legacy("dev=2", CUDA_SUCCESS);
    share_virtual("dev=2", CUDA_SUCCESS);
    share_pool("dev=2", CUDA_SUCCESS);
}

TEST(Hidden, MemoryOfEveryKindIsRefusedWhereItsGpuIsKeptAway) {
    share_legacy("dev=2,hidden=refused", CUDA_ERROR_INVALID_DEVICE);
    share_virtual("dev=2,hidden=refused", CUDA_ERROR_INVALID_DEVICE);
    share_pool("dev=2,hidden=refused", CUDA_ERROR_INVALID_DEVICE);
}

TEST(Hidden, AUuidNamesTheDeviceThatItBegins) {
    const auto count_of = [](const char* visible, int expected) {
        simulated_raw("dev=3", [visible, expected] {
            int count = 0;
            setenv("CUDA_VISIBLE_DEVICES", visible, 1);
            EXPECT_EQ(cuda().cuInit(0), expected > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
            if (expected == 0) return;
            OK(cuda().cuDeviceGetCount(&count));
            EXPECT_EQ(count, expected);
        });
    };
    count_of("GPU-67616e74-7279-2d73-696d-6770752d0003,0", 2);
    count_of("GPU-67616e74-7279-2d73-696d-6770752d0003,GPU-1,0",
             1);                  // stops at what it does not know
    count_of("GPU-67616e74", 0);  // all of them begin so
}

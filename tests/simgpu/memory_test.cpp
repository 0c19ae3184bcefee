// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.hpp"

TEST(Memory, HostLoadOfDeviceMemoryFaultsAtOnce) {
    simulated_death("", SIGSEGV, [] {
        const volatile char* address = reinterpret_cast<const char*>(device_memory(4096));
        exit(address[17]);
    });
}

TEST(Memory, SystemCallsRefuseDeviceMemory) {
    simulated("", [] {
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        EXPECT_EQ(write(ends[1], reinterpret_cast<void*>(device_memory(4096)), 1), -1);
        EXPECT_EQ(errno, EFAULT);
    });
}

TEST(Memory, RoundTripKeepsTheBytes) {
    simulated("", [] {
        for (const std::size_t bytes : {1u, 511u, 4096u, 1u << 20, (2u << 20) + 3}) {
            const std::vector<char> data = pattern(bytes, 7);
            const CUdeviceptr address = device_memory(bytes);
            OK(cuda().cuMemcpyHtoD_v2(address, data.data(), bytes));
            EXPECT_EQ(read_back(address, bytes), data);
        }
    });
}

TEST(Memory, FreshMemoryIsPoisonNotZero) {
    NEEDS_SIMULATOR();
    simulated("",
              [] { EXPECT_EQ(read_back(device_memory(64), 64), std::vector<char>(64, '\xDB')); });
}

TEST(Memory, FreedAddressIsReusedWithANewBufferId) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        unsigned long long before = 0, after = 0;
        const CUdeviceptr first = device_memory(10000);
        OK(cuda().cuPointerGetAttribute(&before, CU_POINTER_ATTRIBUTE_BUFFER_ID, first));
        OK(cuda().cuMemFree_v2(first));
        const CUdeviceptr second = device_memory(10000);
        OK(cuda().cuPointerGetAttribute(&after, CU_POINTER_ATTRIBUTE_BUFFER_ID, second));
        EXPECT_EQ(first, second);
        EXPECT_NE(before, after);
    });
}

TEST(Memory, CopiesBeyondAnAllocationAreRefused) {
    simulated("", [] {
        char host[128] = {};
        const CUdeviceptr address = device_memory(100);
        OK(cuda().cuMemcpyHtoD_v2(address, host, 100));
        EXPECT_EQ(cuda().cuMemcpyHtoD_v2(address, host, 101), CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(cuda().cuMemcpyHtoD_v2(address + 1, host, 100), CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(cuda().cuMemsetD8_v2(address + 99, 0, 2), CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(cuda().cuMemcpyDtoH_v2(host, address + 4096, 1), CUDA_ERROR_INVALID_VALUE);
        char* pinned = pinned_memory(64);
        EXPECT_EQ(cuda().cuMemcpyDtoH_v2(pinned, address, 65), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(Memory, UseAfterFreeAndDoubleFreeAreRefused) {
    simulated("", [] {
        char host[16];
        const CUdeviceptr address = device_memory(100);
        OK(cuda().cuMemFree_v2(address));
        EXPECT_EQ(cuda().cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(cuda().cuMemcpyDtoH_v2(host, address, 1), CUDA_ERROR_INVALID_VALUE);
        EXPECT_EQ(cuda().cuMemFree_v2(0), CUDA_SUCCESS);
    });
}

TEST(Memory, ACapIsOutOfMemoryAndFreeingHelps) {
    simulated("mem=8M", [] {
        const CUdeviceptr first = device_memory(6u << 20);
        CUdeviceptr second = 0;
        EXPECT_EQ(cuda().cuMemAlloc_v2(&second, 4u << 20), CUDA_ERROR_OUT_OF_MEMORY);
        OK(cuda().cuMemFree_v2(first));
        OK(cuda().cuMemAlloc_v2(&second, 4u << 20));
    });
}

TEST(Memory, ManyAllocationsAreDistinctAndFreeInAnyOrder) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        std::vector<CUdeviceptr> all;
        for (std::size_t index = 0; index < 2000; ++index) {
            all.push_back(device_memory(1 + index % 9000));
            OK(cuda().cuMemsetD8_v2(all.back(), static_cast<unsigned char>(index), 1));
        }
        for (std::size_t index = 0; index < all.size(); ++index) {
            ASSERT_EQ(read_back(all[index], 1)[0], static_cast<char>(index));
        }
        for (std::size_t index = 0; index < all.size(); ++index) {
            OK(cuda().cuMemFree_v2(all[index * 7 % all.size()]));
        }
        simgpu_census census{};
        cuda().simgpu_take_census(&census);
        EXPECT_EQ(census.device_ranges, 0u);
    });
}

TEST(Memory, SuballocationMovesTheBaseIntoTheBlock) {
    simulated("suballoc=3", [] {
        CUdeviceptr base = 0;
        std::size_t bytes = 0;
        const CUdeviceptr address = device_memory(1000);
        EXPECT_EQ(address % 4096, 3u * 512);
        OK(cuda().cuMemGetAddressRange_v2(&base, &bytes, address + 999));
        EXPECT_EQ(base, address);
        EXPECT_EQ(bytes, 1000u);
    });
}

TEST(Memory, RegisteringTwiceIsAlreadyRegistered) {
    simulated("", [] {
        std::vector<char> host(8192);
        OK(cuda().cuMemHostRegister_v2(host.data(), host.size(), 0));
        EXPECT_EQ(cuda().cuMemHostRegister_v2(host.data() + 100, 10, 0),
                  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        OK(cuda().cuMemHostUnregister(host.data()));
        EXPECT_EQ(cuda().cuMemHostUnregister(host.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        OK(cuda().cuMemHostRegister_v2(host.data(), host.size(), 0));
    });
}

TEST(Memory, PageLockedMemoryHasOneAddressForBoth) {
    simulated("", [] {
        char* host = pinned_memory(4096);
        memset(host, 5, 4096);
        CUdeviceptr device = 0;
        OK(cuda().cuMemHostGetDevicePointer_v2(&device, host, 0));
        EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(host));
        OK(cuda().cuMemFreeHost(host));
        EXPECT_EQ(cuda().cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(PointerAttributes, OneQuestionAboutHostMemoryFailsManySucceedWithNothing) {
    simulated("", [] {
        int local = 0;
        const auto address = reinterpret_cast<CUdeviceptr>(&local);
        unsigned type = 77;
        unsigned long long id = 77;
        int ordinal = 77;
        EXPECT_EQ(cuda().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
                  CUDA_ERROR_INVALID_VALUE);
        CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                       CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
        void* values[] = {&type, &id, &ordinal};
        OK(cuda().cuPointerGetAttributes(3, which, values, address));
        EXPECT_EQ(type, 0u);
        EXPECT_EQ(id, 0u);
        EXPECT_EQ(ordinal, -2);
    });
}

TEST(PointerAttributes, DescribeEveryKindOfMemory) {
    simulated("dev=2", [] {
        CUcontext second = nullptr;
        OK(cuda().cuDevicePrimaryCtxRetain(&second, 1));
        OK(cuda().cuCtxPushCurrent_v2(second));
        const CUdeviceptr device = device_memory(5000);
        CUdeviceptr managed = 0;
        OK(cuda().cuMemAllocManaged(&managed, 5000, CU_MEM_ATTACH_GLOBAL));
        const auto pinned = reinterpret_cast<CUdeviceptr>(pinned_memory(5000));
        const auto ask = [](CUdeviceptr address, CUpointer_attribute which) {
            unsigned long long value = 0;
            EXPECT_EQ(cuda().cuPointerGetAttribute(&value, which, address), CUDA_SUCCESS);
            return value;
        };
        EXPECT_EQ(ask(device + 4999, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
        EXPECT_EQ(ask(managed, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
        EXPECT_EQ(ask(pinned, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_HOST);
        EXPECT_EQ(ask(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED), 1u);
        EXPECT_EQ(ask(device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL), 1u);
        EXPECT_EQ(ask(device, CU_POINTER_ATTRIBUTE_CONTEXT),
                  reinterpret_cast<unsigned long long>(second));
        EXPECT_EQ(ask(device, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE), 1u);
        EXPECT_EQ(ask(managed, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE), 0u);
        EXPECT_EQ(ask(device + 7, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR), device);
        EXPECT_EQ(ask(device + 7, CU_POINTER_ATTRIBUTE_RANGE_SIZE), 5000u);
        memset(reinterpret_cast<void*>(managed), 3, 5000);  // the host may touch managed memory
    });
}

TEST(PointerAttributes, SyncMemopsIsSetPerAllocation) {
    simulated("", [] {
        const CUdeviceptr address = device_memory(64);
        unsigned value = 1;
        OK(cuda().cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address + 3));
        value = 0;
        OK(cuda().cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address));
        EXPECT_EQ(value, 1u);
        int local = 0;
        EXPECT_EQ(cuda().cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                               reinterpret_cast<CUdeviceptr>(&local)),
                  CUDA_ERROR_INVALID_VALUE);
    });
}

// SPDX-License-Identifier: BSD-3-Clause
//
// A program that uses a GPU, with Gantry's device beside it.
#pragma once

#include "device/cuda/cuda_device.hpp"
#include "gpu_program.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace gantry::device::testing_support {

inline void* pointer(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);
}
inline CUdeviceptr address(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

class CudaTest : public testing::Test {
  protected:
    void SetUp() override {
        if (GpuProgram::library().empty()) GTEST_SKIP() << "no driver to test with";
        ASSERT_TRUE(gpu.load());
        ASSERT_EQ(gpu.cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuCtxSetCurrent(primary), CUDA_SUCCESS);
        make_device();
    }
    void TearDown() override {
        if (primary == nullptr) return;
        if (gpu.simgpu_fault != nullptr) gpu.simgpu_fault(nullptr);
        cuda.reset();
        gpu.cuCtxSetCurrent(nullptr);
        gpu.cuDevicePrimaryCtxRelease_v2(0);
    }
    void make_device() {
        config.cuda_library = GpuProgram::library();
        cuda = std::make_unique<cuda::CudaDevice>(config);
    }

    CUdeviceptr allocate(std::size_t bytes) {
        CUdeviceptr memory = 0;
        EXPECT_EQ(gpu.cuMemAlloc_v2(&memory, bytes), CUDA_SUCCESS);
        return memory;
    }
    // Memory that travels in that way; virtual memory comes in whole granules.
    static constexpr std::size_t kGranule = std::size_t{2} << 20;
    CUdeviceptr allocate(IpcKind kind, std::size_t bytes) {
        if (kind == IpcKind::legacy) return allocate(bytes);
        CUdeviceptr memory = 0;
        if (kind == IpcKind::pool) {
            if (pool == nullptr) {
                CUmemPoolProps properties{};
                properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
                properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
                EXPECT_EQ(gpu.cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
            }
            EXPECT_EQ(gpu.cuMemAllocFromPoolAsync(&memory, bytes, pool, nullptr), CUDA_SUCCESS);
            EXPECT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);
            return memory;
        }
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        const std::size_t mapped = (bytes + kGranule - 1) / kGranule * kGranule;
        CUmemGenericAllocationHandle handle = 0;
        EXPECT_EQ(gpu.cuMemCreate(&handle, mapped, &properties, 0), CUDA_SUCCESS);
        EXPECT_EQ(gpu.cuMemAddressReserve(&memory, mapped, 0, 0, 0), CUDA_SUCCESS);
        EXPECT_EQ(gpu.cuMemMap(memory, mapped, 0, handle, 0), CUDA_SUCCESS);
        const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        EXPECT_EQ(gpu.cuMemSetAccess(memory, mapped, &access, 1), CUDA_SUCCESS);
        EXPECT_EQ(gpu.cuMemRelease(handle), CUDA_SUCCESS);  // the mapping holds it
        virtual_bytes[memory] = mapped;
        return memory;
    }
    void free(CUdeviceptr memory) {
        const auto mapped = virtual_bytes.find(memory);
        if (mapped == virtual_bytes.end()) {
            EXPECT_EQ(gpu.cuMemFree_v2(memory), CUDA_SUCCESS);
            return;
        }
        EXPECT_EQ(gpu.cuMemUnmap(memory, mapped->second), CUDA_SUCCESS);
        EXPECT_EQ(gpu.cuMemAddressFree(memory, mapped->second), CUDA_SUCCESS);
        virtual_bytes.erase(mapped);
    }
    static std::vector<std::uint8_t> pattern(std::size_t bytes, unsigned salt = 1) {
        std::vector<std::uint8_t> data(bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + salt);
        return data;
    }
    std::vector<std::uint8_t> read(CUdeviceptr memory, std::size_t bytes) {
        std::vector<std::uint8_t> data(bytes);
        EXPECT_EQ(gpu.cuMemcpyDtoH_v2(data.data(), memory, bytes), CUDA_SUCCESS);
        return data;
    }
    // Synchronised by the program, as it must be before Gantry has seen the memory: a copy from
    // pageable memory may return before the bytes are there.
    void write(CUdeviceptr memory, const std::vector<std::uint8_t>& data) {
        EXPECT_EQ(gpu.cuMemcpyHtoD_v2(memory, data.data(), data.size()), CUDA_SUCCESS);
        EXPECT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);
    }

    // What the program has on the GPU goes; a next life of the primary context is current.
    void reset_context() {
        ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
        CUcontext again = nullptr;
        ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuCtxSetCurrent(again), CUDA_SUCCESS);
        gpu.cuDevicePrimaryCtxRelease_v2(0);
    }

    Location classify(const void* pointer, Bytes bytes) {
        Result<Location> location = cuda->classify(pointer, bytes);
        EXPECT_TRUE(location.ok()) << location.status().text();
        return location.ok() ? *location : Location{};
    }
    // Makes progress until the completion is there; the limit only ends a test that would hang.
    void finish(const Completion& done) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!done.done() && std::chrono::steady_clock::now() < limit)
            cuda->progress();
        ASSERT_TRUE(done.done()) << "a copy never ended";
    }
    Status copy(const Copy& order) {
        Completion done(executor);
        cuda->copy(order, done);
        finish(done);
        return done.status();
    }

    // Whether one stays depends on time, and most tests count calls.
    static config::Config without_resident_kernels() {
        config::Config config;
        config.idle_timeout = 0;
        return config;
    }

    class StillClock final : public Clock {
      public:
        Nanoseconds now() const override { return 0; }
    };
    StillClock clock;
    Executor executor{clock};
    GpuProgram gpu;
    CUcontext primary = nullptr;
    CUmemoryPool pool = nullptr;
    std::map<CUdeviceptr, std::size_t> virtual_bytes;
    config::Config config = without_resident_kernels();
    std::unique_ptr<cuda::CudaDevice> cuda;
};

}  // namespace gantry::device::testing_support

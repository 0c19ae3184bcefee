// SPDX-License-Identifier: BSD-3-Clause
//
// Every kind of memory a CUDA program has, told apart by the real classification, with the exact
// number of driver calls it costs.
#include "cuda_fixture.hpp"

#include <sys/mman.h>

#include <thread>

namespace gantry::device {
namespace {

using testing_support::CudaTest;
using testing_support::pointer;

struct CudaPointers : CudaTest {
    // Driver calls that the function makes.
    template <class Function>
    std::uint64_t calls(Function function) {
        const std::uint64_t before = cuda->calls().total();
        function();
        return cuda->calls().total() - before;
    }
};

std::uint8_t static_buffer[256];

TEST_F(CudaPointers, DeviceMemoryIsKnownWithItsGpuAndAllocation) {
    const CUdeviceptr memory = allocate(8192);
    const Location location = classify(pointer(memory + 100), 1000);
    EXPECT_EQ(location.kind, MemoryKind::device);
    EXPECT_EQ(location.gpu, 0);
    EXPECT_EQ(location.base, memory);
    EXPECT_GE(location.size, 8192u);
    EXPECT_NE(location.buffer_id, 0u);
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaPointers, ARepeatedDeviceBufferCostsOneAttributeQuery) {
    const CUdeviceptr memory = allocate(4096);
    classify(pointer(memory), 4096);
    for (int use = 0; use < 3; ++use) {
        const std::uint64_t queries = cuda->calls().queries;
        EXPECT_EQ(calls([&] { classify(pointer(memory), 4096); }), 1u);
        EXPECT_EQ(cuda->calls().queries, queries + 1);
    }
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaPointers, StaticDataTheHeapAndStacksCostNothing) {
    classify(static_buffer,
             sizeof(static_buffer));  // wakes the device: the driver is there already
    cuda->active();
    std::uint8_t stack_buffer[64] = {};
    EXPECT_EQ(calls([&] { classify(static_buffer, sizeof(static_buffer)); }), 0u);
    EXPECT_EQ(calls([&] { classify(stack_buffer, sizeof(stack_buffer)); }), 0u);
}

TEST_F(CudaPointers, MappedHostMemoryCostsOneQueryEachTime) {
    void* memory = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    classify(memory, 4096);
    for (int use = 0; use < 3; ++use)
        EXPECT_EQ(calls([&] { EXPECT_EQ(classify(memory, 4096).kind, MemoryKind::host); }), 1u);
    munmap(memory, 4096);
}

TEST_F(CudaPointers, PinnedRegisteredAndManagedMemoryAreKinds) {
    void* pinned = nullptr;
    ASSERT_EQ(gpu.cuMemAllocHost_v2(&pinned, 4096), CUDA_SUCCESS);
    EXPECT_EQ(classify(pinned, 4096).kind, MemoryKind::pinned);
    EXPECT_EQ(classify(pinned, 4096).gpu, -1) << "host memory belongs to no GPU";
    gpu.cuMemFreeHost(pinned);

    void* mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_EQ(gpu.cuMemHostRegister_v2(mapped, 4096, 0), CUDA_SUCCESS);
    EXPECT_EQ(classify(mapped, 4096).kind, MemoryKind::pinned);
    EXPECT_EQ(classify(mapped, 8192).kind, MemoryKind::host) << "only half of it is registered";
    gpu.cuMemHostUnregister(mapped);
    EXPECT_EQ(classify(mapped, 4096).kind, MemoryKind::host);
    munmap(mapped, 8192);

    CUdeviceptr managed = 0;
    ASSERT_EQ(gpu.cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(classify(pointer(managed), 4096).kind, MemoryKind::managed);
    gpu.cuMemFree_v2(managed);
}

TEST_F(CudaPointers, PoolMemoryIsDeviceMemoryThatCannotBeExported) {
    CUdeviceptr memory = 0;
    ASSERT_EQ(gpu.cuMemAllocAsync(&memory, 4096, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);
    const Location location = classify(pointer(memory), 4096);
    EXPECT_EQ(location.kind, MemoryKind::device);
    EXPECT_EQ(location.ipc, IpcKind::none);
    EXPECT_EQ(cuda->export_memory(location).status().error_class(), MPI_ERR_UNSUPPORTED_OPERATION);
    gpu.cuMemFreeAsync(memory, nullptr);
}

TEST_F(CudaPointers, MemoryFreedAndAllocatedAgainIsAnotherBuffer) {
    const CUdeviceptr first = allocate(4096);
    const std::uint64_t first_id = classify(pointer(first), 4096).buffer_id;
    gpu.cuMemFree_v2(first);
    const CUdeviceptr second = allocate(4096);
    EXPECT_NE(classify(pointer(second), 4096).buffer_id, first_id);
    if (gpu.simulated()) {
        EXPECT_EQ(second, first) << "the simulator reuses addresses on purpose";
    }
    gpu.cuMemFree_v2(second);
    Result<Location> gone = cuda->classify(pointer(second), 4096);
    EXPECT_EQ(gone.status().error_class(), MPI_ERR_BUFFER);
    EXPECT_NE(gone.status().text().find("it was freed"), std::string_view::npos);
}

// What no driver knows is host memory only where there is memory.
TEST_F(CudaPointers, HostMemoryIsWhatTheProcessorCanRead) {
    constexpr std::size_t kPage = 4096;
    auto* memory = static_cast<std::byte*>(
        mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    EXPECT_EQ(classify(memory, kPage).kind, MemoryKind::host);
    EXPECT_EQ(classify(memory + kPage - 1, 1).kind, MemoryKind::host);
    ASSERT_EQ(mprotect(memory, kPage, PROT_NONE), 0);
    EXPECT_EQ(cuda->classify(memory + kPage - 1, 1).status().error_class(), MPI_ERR_BUFFER);
    EXPECT_EQ(classify(memory + kPage, 1).kind, MemoryKind::host);
    ASSERT_EQ(munmap(memory, 2 * kPage), 0);
    EXPECT_EQ(cuda->classify(memory + kPage, 1).status().error_class(), MPI_ERR_BUFFER);
}

TEST_F(CudaPointers, ABufferThatLeavesItsAllocationIsABufferError) {
    const CUdeviceptr memory = allocate(4096);
    const Location location = classify(pointer(memory), 1);
    Result<Location> beyond = cuda->classify(pointer(memory), location.size + 1);
    EXPECT_EQ(beyond.status().error_class(), MPI_ERR_BUFFER);
    EXPECT_NE(beyond.status().text().find("leaves its allocation"), std::string_view::npos);
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaPointers, FirstUseMakesTheProgramsOwnCopiesSynchronous) {
    const CUdeviceptr memory = allocate(4096);
    classify(pointer(memory), 4096);
    unsigned on = 0;
    ASSERT_EQ(gpu.cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory),
              CUDA_SUCCESS);
    EXPECT_EQ(on & 1u, 1u);
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaPointers, AThreadWithoutAContextSeesTheSame) {
    const CUdeviceptr memory = allocate(4096);
    std::thread other([&] { EXPECT_TRUE(classify(pointer(memory), 4096).on_device()); });
    other.join();
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaPointers, TheSecondGpusMemoryIsOnTheSecondGpu) {
    if (cuda->gpu_count() < 2) GTEST_SKIP() << "one GPU";
    CUcontext second = nullptr;
    ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
    gpu.cuCtxSetCurrent(second);
    const CUdeviceptr memory = allocate(4096);
    gpu.cuCtxSetCurrent(primary);
    EXPECT_EQ(classify(pointer(memory), 4096).gpu, 1);
    EXPECT_NE(cuda->gpu_facts(0).uuid, cuda->gpu_facts(1).uuid);
    EXPECT_EQ(cuda->gpu_of(cuda->gpu_facts(1).uuid), 1);
    gpu.cuMemFree_v2(memory);
    gpu.cuDevicePrimaryCtxRelease_v2(1);
}

TEST_F(CudaPointers, AGpuIsPricedByTheMachineThatItsNameSpeaksOf) {
    char name[256] = {};
    ASSERT_EQ(gpu.cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
    const std::string_view spoken(name);
    if (!spoken.ends_with("H200") && !spoken.ends_with("(h200)")) GTEST_SKIP() << "another GPU";
    EXPECT_GT(cuda->gpu_facts(0).d2h_bytes_per_second, 50e9);
    int mps = 0;
    ASSERT_EQ(gpu.cuDeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuda->gpu_facts(0).queue_turn > 0, mps == 0);
}

TEST_F(CudaPointers, ARefusedQueryIsAnErrorThatNamesIt) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    const CUdeviceptr memory = allocate(4096);
    classify(static_buffer, 1);
    ASSERT_EQ(gpu.simgpu_fault("cuPointerGetAttributes:*:999"), 0);
    const Status status = cuda->classify(pointer(memory), 8).status();
    EXPECT_EQ(status.error_class(), MPI_ERR_OTHER);
    EXPECT_NE(status.text().find("cuPointerGetAttributes"), std::string_view::npos)
        << status.text();
    EXPECT_NE(status.text().find("CUDA_ERROR_UNKNOWN"), std::string_view::npos) << status.text();
    gpu.simgpu_fault(nullptr);
    EXPECT_TRUE(classify(pointer(memory), 8).on_device());
    gpu.cuMemFree_v2(memory);
}

}  // namespace
}  // namespace gantry::device

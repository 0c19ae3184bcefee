// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory of another process: opened once, bounded, never closed under a user, never stale.
#include "cuda_fixture.hpp"
#include "exporter.hpp"

namespace gantry::device {
namespace {

using testing_support::CudaTest;
using testing_support::Exporter;
using testing_support::pointer;

struct CudaIpc : CudaTest {
    static constexpr Bytes kBytes = 70000;
    void SetUp() override {
        CudaTest::SetUp();
        if (primary == nullptr) return;
        const CUdeviceptr probe = allocate(64);
        const bool possible = classify(pointer(probe), 64).ipc == IpcKind::legacy;
        gpu.cuMemFree_v2(probe);
        if (!possible) GTEST_SKIP() << "this GPU's memory cannot be opened by other processes";
        peer = std::make_unique<Exporter>();
    }
    void TearDown() override {
        // Mappings are closed before their owner ends.
        cuda.reset();
        peer.reset();
        CudaTest::TearDown();
    }
    void* open(const IpcHandle& handle, int on = 0) {
        Result<void*> opened = cuda->open_memory(handle, on);
        EXPECT_TRUE(opened.ok()) << opened.status().text();
        return opened.ok() ? *opened : nullptr;
    }
    std::vector<std::uint8_t> fetch(const void* mapped, Bytes bytes, int on = 0) {
        std::vector<std::uint8_t> data(bytes);
        const Status status = copy({data.data(), mapped, bytes, on, Engine::d2h});
        EXPECT_TRUE(status.ok()) << status.text();
        return data;
    }
    static std::vector<std::uint8_t> all(std::uint8_t value, Bytes bytes = kBytes) {
        return std::vector<std::uint8_t>(bytes, value);
    }
    bool is_open(const IpcHandle& handle, int on) {
        return cuda->access(handle, on) == Access::open;
    }
    std::unique_ptr<Exporter> peer;
};

TEST_F(CudaIpc, BytesMoveBothWaysThroughAMapping) {
    const IpcHandle handle = peer->allocate(kBytes, 7);
    void* mapped = open(handle);
    EXPECT_EQ(fetch(mapped, kBytes), all(7));
    const CUdeviceptr mine = allocate(kBytes);
    classify(pointer(mine), kBytes);
    gpu.fill(mine, 9, kBytes);
    EXPECT_TRUE(copy({mapped, pointer(mine), handle.size, 0, Engine::d2d}).ok() ||
                handle.size > kBytes);
    EXPECT_TRUE(copy({mapped, pointer(mine), kBytes, 0, Engine::automatic}).ok());
    EXPECT_EQ(fetch(mapped, kBytes), all(9));
    cuda->close_memory(handle, 0);
    gpu.cuMemFree_v2(mine);
}

TEST_F(CudaIpc, SmallAllocationsOfOneBlockAreToldApart) {
    const IpcHandle first = peer->allocate(64, 1);
    const IpcHandle second = peer->allocate(64, 2);
    EXPECT_EQ(fetch(open(first), 64), all(1, 64));
    EXPECT_EQ(fetch(open(second), 64), all(2, 64));
}

TEST_F(CudaIpc, ASecondOpenMakesNoDriverCallsOfIpc) {
    const IpcHandle handle = peer->allocate(kBytes, 7);
    void* mapped = open(handle);
    cuda->close_memory(handle, 0);
    const std::uint64_t before = cuda->calls().ipc;
    EXPECT_TRUE(is_open(handle, 0));
    EXPECT_EQ(open(handle), mapped);
    cuda->close_memory(handle, 0);
    EXPECT_EQ(cuda->calls().ipc, before);
}

TEST_F(CudaIpc, OpeningAgainAsksTheDriverNothing) {
    const IpcHandle handle = peer->allocate(kBytes, 7);
    EXPECT_EQ(cuda->open_memory(handle, 0, Opening::known_only).value(), nullptr)
        << "it is not mapped";
    void* mapped = open(handle);
    cuda->close_memory(handle, 0);
    EXPECT_EQ(cuda->open_memory(handle, 0, Opening::known_only).value(), nullptr)
        << "nobody copies in its context, so nobody finds out whether that lives";
    fetch(open(handle), kBytes);
    cuda->close_memory(handle, 0);
    const std::uint64_t before = cuda->calls().total();
    EXPECT_EQ(cuda->open_memory(handle, 0, Opening::known_only).value(), mapped);
    EXPECT_EQ(cuda->open_memory(handle, 0, Opening::known_only).value(), mapped)
        << "now it is in use";
    EXPECT_EQ(cuda->calls().total(), before);
    cuda->forget_memory(handle.buffer_id, handle.gpu);
    EXPECT_EQ(cuda->open_memory(handle, 0, Opening::known_only).value(), nullptr)
        << "its owner freed it";
    EXPECT_EQ(fetch(mapped, kBytes), all(7)) << "it was counted as used twice";
    cuda->close_memory(handle, 0);
    EXPECT_EQ(fetch(mapped, kBytes), all(7));
    cuda->close_memory(handle, 0);
}

TEST_F(CudaIpc, WhatIsOpenedAgainAfterAResetIsMappedAnew) {
    const IpcHandle handle = peer->allocate(kBytes, 7);
    fetch(open(handle), kBytes);
    cuda->close_memory(handle, 0);
    ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSetCurrent(primary), CUDA_SUCCESS);
    void* again = cuda->open_memory(handle, 0, Opening::known_only).value();
    if (again == nullptr) again = open(handle);
    EXPECT_EQ(fetch(again, kBytes), all(7));
    cuda->close_memory(handle, 0);
}

TEST_F(CudaIpc, TheMappingUnusedForLongestIsClosedFirst) {
    config.ipc_cache_entries = 2;
    make_device();
    IpcHandle handles[3];
    for (int i = 0; i < 3; ++i)
        handles[i] = peer->allocate(kBytes, 1);
    for (const int i : {0, 1, 0, 2}) {
        open(handles[i]);
        cuda->close_memory(handles[i], 0);
    }
    EXPECT_TRUE(is_open(handles[0], 0));
    EXPECT_FALSE(is_open(handles[1], 0));
    EXPECT_TRUE(is_open(handles[2], 0));
}

TEST_F(CudaIpc, AMappingInUseIsNeverClosedForAnother) {
    config.ipc_cache_entries = 1;
    make_device();
    const IpcHandle first = peer->allocate(kBytes, 1);
    const IpcHandle second = peer->allocate(kBytes, 2);
    void* mapped = open(first);
    const Status full = cuda->open_memory(second, 0).status();
    EXPECT_EQ(full.error_class(), MPI_ERR_NO_MEM);
    EXPECT_NE(full.text().find("GANTRY_IPC_CACHE_ENTRIES"), std::string_view::npos);
    EXPECT_EQ(fetch(mapped, kBytes), all(1));
    cuda->close_memory(first, 0);
    EXPECT_EQ(fetch(open(second), kBytes), all(2));
    EXPECT_FALSE(is_open(first, 0));
}

// A copy through the old one was under way when its context went.
TEST_F(CudaIpc, WhoUsedALostMappingDoesNotEndTheUseOfTheNewOne) {
    config.ipc_cache_entries = 1;
    make_device();
    const IpcHandle first = peer->allocate(kBytes, 1);
    const IpcHandle second = peer->allocate(kBytes, 2);
    fetch(open(first), kBytes);
    ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSetCurrent(primary), CUDA_SUCCESS);
    const CUdeviceptr other = allocate(64);
    fetch(pointer(other), 64);  // finds that the context of before is dead
    void* again = open(first);
    cuda->close_memory(first, 0);  // the old use
    EXPECT_FALSE(cuda->open_memory(second, 0).ok()) << "it was closed under its user";
    EXPECT_EQ(fetch(again, kBytes), all(1));
    cuda->close_memory(first, 0);
    EXPECT_EQ(fetch(open(second), kBytes), all(2));
    cuda->close_memory(second, 0);
    gpu.cuMemFree_v2(other);
}

TEST_F(CudaIpc, BytesMappedAreBounded) {
    config.ipc_cache_bytes = 3 * kBytes;
    make_device();
    const IpcHandle first = peer->allocate(kBytes, 1);
    const IpcHandle second = peer->allocate(2 * kBytes + 4096, 2);
    const IpcHandle huge = peer->allocate(4 * kBytes, 3);
    open(first);
    cuda->close_memory(first, 0);
    open(second);
    EXPECT_FALSE(is_open(first, 0));
    cuda->close_memory(second, 0);
    EXPECT_EQ(cuda->open_memory(huge, 0).status().error_class(), MPI_ERR_NO_MEM);
}

TEST_F(CudaIpc, ForgottenMemoryIsClosedWhenItsLastUserIsDone) {
    const IpcHandle handle = peer->allocate(kBytes, 1);
    open(handle);
    open(handle);
    cuda->forget_memory(handle.buffer_id, handle.gpu);
    EXPECT_FALSE(is_open(handle, 0));
    const std::uint64_t before = cuda->calls().ipc;
    cuda->close_memory(handle, 0);
    EXPECT_EQ(cuda->calls().ipc, before) << "one user is left";
    cuda->close_memory(handle, 0);
    EXPECT_EQ(cuda->calls().ipc, before + 1);
}

TEST_F(CudaIpc, MemoryFreedAndAllocatedAgainByItsOwnerIsNotStale) {
    const IpcHandle old = peer->allocate(kBytes, 1);
    EXPECT_EQ(fetch(open(old), kBytes), all(1));
    cuda->close_memory(old, 0);
    EXPECT_TRUE(peer->still_valid(old));
    peer->free(old);
    EXPECT_FALSE(peer->still_valid(old));
    const IpcHandle fresh = peer->allocate(kBytes, 2);
    EXPECT_NE(fresh.buffer_id, old.buffer_id);
    EXPECT_FALSE(is_open(fresh, 0));
    EXPECT_EQ(fetch(open(fresh), kBytes), all(2));
}

TEST_F(CudaIpc, AHandleOfThisProcessIsTheMemoryItself) {
    const CUdeviceptr mine = allocate(kBytes);
    Result<IpcHandle> handle = cuda->export_memory(classify(pointer(mine), kBytes));
    ASSERT_TRUE(handle.ok()) << handle.status().text();
    EXPECT_EQ(open(*handle), pointer(mine));
    EXPECT_TRUE(is_open(*handle, 0));
    cuda->close_memory(*handle, 0);
    gpu.cuMemFree_v2(mine);
    EXPECT_FALSE(cuda->still_valid(*handle));
}

// The driver may hand out the addresses of a mapping that went with its context. Nothing else tells
// that it went, if the context keeps its handle and its id.
TEST_F(CudaIpc, AMappingIsGoneWhenOwnMemoryLiesWhereItWas) {
    const IpcHandle handle = peer->allocate(kBytes, 1);
    const CUdeviceptr mapped = testing_support::address(open(handle));
    cuda->close_memory(handle, 0);
    ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSetCurrent(primary), CUDA_SUCCESS);
    CUdeviceptr mine = 0;
    for (int i = 0; i < 64 && mine != mapped; ++i)
        mine = allocate(kBytes);
    if (mine != mapped) GTEST_SKIP() << "the driver does not use the addresses again";
    gpu.fill(mine, 9, kBytes);
    classify(pointer(mine), kBytes);
    EXPECT_FALSE(is_open(handle, 0));
    void* const again = open(handle);
    EXPECT_NE(again, pointer(mine));
    EXPECT_TRUE(copy({pointer(mine), again, kBytes, 0, Engine::d2d}).ok());
    EXPECT_EQ(fetch(pointer(mine), kBytes), all(1));
    cuda->close_memory(handle, 0);
}

TEST_F(CudaIpc, ALookAtExportedMemoryIsCountedApartFromTheQueriesOfMessages) {
    const CUdeviceptr mine = allocate(kBytes);
    Result<IpcHandle> handle = cuda->export_memory(classify(pointer(mine), kBytes));
    ASSERT_TRUE(handle.ok()) << handle.status().text();
    const cuda::Calls before = cuda->calls();
    for (int look = 0; look < 3; ++look)
        EXPECT_TRUE(cuda->still_valid(*handle));
    gpu.cuMemFree_v2(mine);
    EXPECT_FALSE(cuda->still_valid(*handle));
    const cuda::Calls& after = cuda->calls();
    EXPECT_EQ(after.rechecks - before.rechecks, 4u);
    EXPECT_EQ(after.queries - before.queries, 0u);
    EXPECT_EQ(after.total() - before.total(), 4u);
}

TEST_F(CudaIpc, ARefusedOpenIsAnErrorAndIsNotTriedAgain) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    const IpcHandle handle = peer->allocate(kBytes, 1);
    ASSERT_EQ(gpu.simgpu_fault("cuIpcOpenMemHandle_v2:*:801"), 0);
    const Status refused = cuda->open_memory(handle, 0).status();
    EXPECT_NE(refused.text().find("cuIpcOpenMemHandle"), std::string_view::npos) << refused.text();
    const std::uint64_t before = gpu.simgpu_calls("cuIpcOpenMemHandle_v2");
    EXPECT_FALSE(cuda->open_memory(handle, 0).ok());
    EXPECT_EQ(gpu.simgpu_calls("cuIpcOpenMemHandle_v2"), before);
}

TEST_F(CudaIpc, AnOlderMappingInTheWayIsClosed) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    const IpcHandle old = peer->allocate(kBytes, 1);
    open(old);
    cuda->close_memory(old, 0);
    peer->free(old);
    const IpcHandle fresh = peer->allocate(kBytes, 2);
    ASSERT_EQ(gpu.simgpu_fault("cuIpcOpenMemHandle_v2:1:208"), 0);
    EXPECT_EQ(fetch(open(fresh), kBytes), all(2));
}

TEST_F(CudaIpc, ARefusedExportIsAnErrorAndIsNotTriedAgain) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    const CUdeviceptr mine = allocate(kBytes);
    const Location location = classify(pointer(mine), kBytes);
    ASSERT_EQ(gpu.simgpu_fault("cuIpcGetMemHandle:*:801"), 0);
    EXPECT_EQ(cuda->export_memory(location).status().error_class(), MPI_ERR_UNSUPPORTED_OPERATION);
    const std::uint64_t before = gpu.simgpu_calls("cuIpcGetMemHandle");
    EXPECT_FALSE(cuda->export_memory(location).ok());
    EXPECT_EQ(gpu.simgpu_calls("cuIpcGetMemHandle"), before);
    gpu.cuMemFree_v2(mine);
}

TEST_F(CudaIpc, MappingsGoWithTheirContext) {
    CUcontext own = nullptr;
    ASSERT_EQ(gpu.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr mine = allocate(64);
    classify(pointer(mine), 64);
    const IpcHandle handle = peer->allocate(kBytes, 1);
    open(handle);
    cuda->close_memory(handle, 0);
    ASSERT_EQ(gpu.cuCtxDestroy_v2(own), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSetCurrent(primary), CUDA_SUCCESS);
    const CUdeviceptr other = allocate(64);
    classify(pointer(other), 64);
    EXPECT_EQ(fetch(open(handle), kBytes), all(1));
    cuda->close_memory(handle, 0);
    gpu.cuMemFree_v2(other);
}

TEST_F(CudaIpc, AnotherGpuReachesTheMemoryThroughItsOwnMapping) {
    if (cuda->gpu_count() < 2 || !cuda->reaches(1, cuda->gpu_facts(0).uuid))
        GTEST_SKIP() << "no peer GPU";
    const IpcHandle handle = peer->allocate(kBytes, 5);
    void* mapped = open(handle, 1);
    EXPECT_EQ(fetch(mapped, kBytes, 1), all(5));
    EXPECT_FALSE(is_open(handle, 0));
    cuda->close_memory(handle, 1);
}

TEST_F(CudaIpc, NoMappingIsLeftOpen) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs the simulator's census";
    const IpcHandle handle = peer->allocate(kBytes, 1);
    open(handle);
    cuda->shut_down();
    simgpu_census census{};
    gpu.simgpu_take_census(&census);
    EXPECT_EQ(census.imported_ranges, 0u);
}

}  // namespace
}  // namespace gantry::device

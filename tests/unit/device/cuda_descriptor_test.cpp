// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory that travels by file descriptor: virtual memory and exportable pools, between two
// processes. What holds for every kind of handle is in cuda_ipc_test.cpp.
#include "cuda_fixture.hpp"
#include "exporter.hpp"
#include "sanitized.hpp"

namespace gantry::device {
namespace {

using testing_support::count_open_descriptors;
using testing_support::CudaTest;
using testing_support::Exporter;
using testing_support::pointer;

struct ByDescriptor : CudaTest, testing::WithParamInterface<IpcKind> {
    static constexpr Bytes kBytes = kGranule;
    void SetUp() override {
        CudaTest::SetUp();
        if (primary == nullptr) return;
        const CUdeviceptr probe = allocate(GetParam(), kBytes);
        const bool possible = classify(pointer(probe), kBytes).ipc == GetParam();
        free(probe);
        if (!possible) GTEST_SKIP() << "this GPU's memory cannot travel by descriptor";
        peer = std::make_unique<Exporter>();
        inbox = cuda->descriptor_inbox();
        ASSERT_NE(inbox, 0u);
    }
    void TearDown() override {
        cuda.reset();
        peer.reset();
        CudaTest::TearDown();
    }
    IpcHandle exported(std::uint8_t value) { return peer->allocate(kBytes, value, GetParam()); }
    void* open(const IpcHandle& handle) {
        Result<void*> opened = cuda->open_memory(handle, 0);
        EXPECT_TRUE(opened.ok()) << opened.status().text();
        return opened.ok() ? *opened : nullptr;
    }
    void* open_new(const IpcHandle& handle) {
        EXPECT_TRUE(peer->send_descriptor(handle, inbox));
        return open(handle);
    }
    std::vector<std::uint8_t> fetch(const void* mapped) {
        std::vector<std::uint8_t> data(kBytes);
        const Status status = copy({data.data(), mapped, kBytes, 0, Engine::d2h});
        EXPECT_TRUE(status.ok()) << status.text();
        return data;
    }
    static std::vector<std::uint8_t> all(std::uint8_t value) {
        return std::vector<std::uint8_t>(kBytes, value);
    }
    bool is_pool() const { return GetParam() == IpcKind::pool; }
    std::unique_ptr<Exporter> peer;
    std::uint32_t inbox = 0;
};

TEST_P(ByDescriptor, OpensOnceTheDescriptorHasCome) {
    const IpcHandle handle = exported(7);
    EXPECT_EQ(cuda->access(handle, 0), Access::no_descriptor);
    EXPECT_FALSE(cuda->open_memory(handle, 0).ok());
    ASSERT_TRUE(peer->send_descriptor(handle, inbox));
    EXPECT_EQ(cuda->access(handle, 0), Access::closed);
    EXPECT_EQ(fetch(open(handle)), all(7));
    EXPECT_EQ(cuda->access(handle, 0), Access::open);
    // The next one of a pool needs none.
    EXPECT_EQ(cuda->access(exported(8), 0), is_pool() ? Access::closed : Access::no_descriptor);
}

TEST_P(ByDescriptor, BytesMoveBothWays) {
    const IpcHandle handle = exported(7);
    void* mapped = open_new(handle);
    EXPECT_EQ(fetch(mapped), all(7));
    const CUdeviceptr mine = allocate(GetParam(), kBytes);
    gpu.fill(mine, 9, kBytes);
    classify(pointer(mine), kBytes);
    EXPECT_TRUE(copy({mapped, pointer(mine), kBytes, 0, Engine::automatic}).ok());
    EXPECT_TRUE(peer->holds(handle, 9));
    cuda->close_memory(handle, 0);
    free(mine);
}

TEST_P(ByDescriptor, AnOpenMappingCostsNoMoreCallsOfIpc) {
    const IpcHandle handle = exported(1);
    void* mapped = open_new(handle);
    cuda->close_memory(handle, 0);
    const std::uint64_t before = cuda->calls().ipc;
    EXPECT_EQ(open(handle), mapped);
    cuda->close_memory(handle, 0);
    EXPECT_EQ(cuda->calls().ipc, before);
}

TEST_P(ByDescriptor, ExactlyTheseCallsOpenAndCloseIt) {
    const IpcHandle first = exported(1);
    const std::uint64_t before = cuda->calls().ipc;
    open_new(first);
    // import, reserve, map, release, access; import, access, pointer; whose memory it is then.
    EXPECT_EQ(cuda->calls().ipc - before, is_pool() ? 4u : 6u);
    const IpcHandle second = exported(2);
    const std::uint64_t second_before = cuda->calls().ipc;
    open_new(second);
    EXPECT_EQ(cuda->calls().ipc - second_before, is_pool() ? 2u : 6u);
    cuda->close_memory(second, 0);
    const std::uint64_t closing = cuda->calls().ipc;
    cuda->forget_memory(second.buffer_id, second.gpu);
    EXPECT_EQ(cuda->calls().ipc - closing, is_pool() ? 1u : 2u);  // free; unmap, give back
}

TEST_P(ByDescriptor, MemoryFreedAndAllocatedAgainByItsOwnerIsNotStale) {
    for (std::uint8_t round = 1; round < 6; ++round) {
        const IpcHandle handle = exported(round);
        EXPECT_NE(cuda->access(handle, 0), Access::open);
        EXPECT_EQ(fetch(open_new(handle)), all(round));
        cuda->close_memory(handle, 0);
        EXPECT_TRUE(peer->still_valid(handle));
        peer->free(handle);
        EXPECT_FALSE(peer->still_valid(handle));
    }
}

TEST_P(ByDescriptor, AThousandAllocationsLeaveNoDescriptorsAndNoMappings) {
    config.ipc_cache_entries = 3;
    make_device();
    inbox = cuda->descriptor_inbox();
    const int at_first = count_open_descriptors();
    const int there_at_first = peer->open_descriptors();
    for (int i = 0; i < repetitions(1000); ++i) {
        const auto value = static_cast<std::uint8_t>(i);
        const IpcHandle handle = exported(value);
        if (i % 2 == 0) {
            std::uint8_t byte = 0;
            ASSERT_TRUE(copy({&byte, open_new(handle), 1, 0, Engine::d2h}).ok());
            ASSERT_EQ(byte, value);
            cuda->close_memory(handle, 0);
        } else {
            peer->send_descriptor(handle, inbox);  // and then it is not opened
            cuda->access(handle, 0);
        }
        peer->free(handle);
        if (i % 3 == 0) cuda->forget_memory(handle.buffer_id, handle.gpu);
    }
    EXPECT_LE(count_open_descriptors() - at_first, 64 + 4);  // what waits, and the mappings
    EXPECT_LE(peer->open_descriptors() - there_at_first, 4);
    cuda->shut_down();
    EXPECT_LE(count_open_descriptors(), at_first + 1);
    if (!gpu.simulated()) return;
    simgpu_census census{};
    gpu.simgpu_take_census(&census);
    EXPECT_EQ(census.imported_ranges, 0u);
}

TEST_P(ByDescriptor, ARefusedExportIsToldAndNotAskedForAgain) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    const IpcHandle handle = exported(1);
    peer->inject(is_pool() ? "cuMemPoolExportToShareableHandle:*:801"
                           : "cuMemExportToShareableHandle:*:801");
    EXPECT_FALSE(peer->send_descriptor(handle, inbox));
    EXPECT_EQ(cuda->access(handle, 0), Access::never);
}

TEST_P(ByDescriptor, ARefusedImportLeavesNothingBehind) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    const std::vector<const char*> faults =
        is_pool()
            ? std::vector<const char*>{"cuMemPoolImportFromShareableHandle:*:801",
                                       "cuMemPoolSetAccess:*:801", "cuMemPoolImportPointer:*:801"}
            : std::vector<const char*>{"cuMemImportFromShareableHandle:*:801",
                                       "cuMemAddressReserve:*:801", "cuMemMap:*:801",
                                       "cuMemSetAccess:*:801"};
    simgpu_census before{};
    gpu.simgpu_take_census(&before);
    for (const char* fault : faults) {
        const IpcHandle handle = exported(1);
        ASSERT_TRUE(peer->send_descriptor(handle, inbox));
        ASSERT_EQ(gpu.simgpu_fault(fault), 0);
        const Status refused = cuda->open_memory(handle, 0).status();
        EXPECT_NE(refused.text().find(std::string(fault).substr(0, 8)), std::string_view::npos)
            << refused.text();
        EXPECT_EQ(cuda->access(handle, 0), Access::never);
        gpu.simgpu_fault(nullptr);
        simgpu_census after{};
        gpu.simgpu_take_census(&after);
        EXPECT_EQ(after.device_ranges, before.device_ranges) << fault;
        EXPECT_EQ(after.imported_ranges, before.imported_ranges) << fault;
    }
    const IpcHandle fresh = exported(3);
    EXPECT_EQ(fetch(open_new(fresh)), all(3));
}

TEST_P(ByDescriptor, MappingsOutliveNoContextTheyWereMadeIn) {
    CUcontext own = nullptr;
    ASSERT_EQ(gpu.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr mine = CudaTest::allocate(64);
    classify(pointer(mine), 64);
    const IpcHandle handle = exported(1);
    open_new(handle);
    cuda->close_memory(handle, 0);
    ASSERT_EQ(gpu.cuCtxDestroy_v2(own), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSetCurrent(primary), CUDA_SUCCESS);
    const CUdeviceptr other = CudaTest::allocate(64);
    classify(pointer(other), 64);
    EXPECT_EQ(fetch(open_new(handle)), all(1));
    cuda->close_memory(handle, 0);
    gpu.cuMemFree_v2(other);
}

TEST_P(ByDescriptor, MemoryLargerThanTheCacheIsNeverOpened) {
    config.ipc_cache_bytes = kBytes - 1;
    make_device();
    EXPECT_EQ(cuda->access(exported(1), 0), Access::never);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ByDescriptor, testing::Values(IpcKind::vmm, IpcKind::pool),
                         [](const auto& instance) {
                             return instance.param == IpcKind::vmm ? "VirtualMemory" : "Pool";
                         });

struct CudaKinds : CudaTest {};

TEST_F(CudaKinds, MemoryWithoutAHandleTypeCannotTravel) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr memory = 0;
    ASSERT_EQ(gpu.cuMemCreate(&handle, kGranule, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuMemAddressReserve(&memory, kGranule, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuMemMap(memory, kGranule, 0, handle, 0), CUDA_SUCCESS);
    const Location location = classify(pointer(memory), 100);
    EXPECT_EQ(location.kind, MemoryKind::device);
    EXPECT_EQ(location.ipc, IpcKind::none);
    EXPECT_EQ(gpu.cuMemUnmap(memory, kGranule), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cuMemAddressFree(memory, kGranule), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(CudaKinds, ABufferOverTwoMappingsHasNoOneHandle) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUdeviceptr memory = 0;
    ASSERT_EQ(gpu.cuMemAddressReserve(&memory, 2 * kGranule, 0, 0, 0), CUDA_SUCCESS);
    for (const CUdeviceptr part : {memory, memory + kGranule}) {
        CUmemGenericAllocationHandle handle = 0;
        ASSERT_EQ(gpu.cuMemCreate(&handle, kGranule, &properties, 0), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuMemMap(part, kGranule, 0, handle, 0), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuMemRelease(handle), CUDA_SUCCESS);
    }
    ASSERT_EQ(gpu.cuMemSetAccess(memory, 2 * kGranule, &access, 1), CUDA_SUCCESS);
    EXPECT_EQ(classify(pointer(memory), kGranule).ipc, IpcKind::vmm);
    EXPECT_EQ(classify(pointer(memory + 100), kGranule).ipc, IpcKind::none);
    EXPECT_EQ(gpu.cuMemUnmap(memory, 2 * kGranule), CUDA_SUCCESS);
    EXPECT_EQ(gpu.cuMemAddressFree(memory, 2 * kGranule), CUDA_SUCCESS);
}

}  // namespace
}  // namespace gantry::device

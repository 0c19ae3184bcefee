// SPDX-License-Identifier: BSD-3-Clause
//
// BAR mappings of device memory (GDRCopy), over the simulated libgdrapi: opened when they repay
// themselves, bounded, refused in silence, and never touched once their memory is gone.
#include "cuda_fixture.hpp"

#include <dlfcn.h>

namespace gantry::device {
namespace {

using testing_support::CudaTest;
using testing_support::pointer;

// How many small messages repay a mapping with the built-in costs.
constexpr int kRepaid = 64;

struct CudaBar : CudaTest {
    void SetUp() override {
        library = dlopen(GANTRY_SIM_GDR, RTLD_NOW);
        if (library == nullptr) GTEST_SKIP() << "not run: " << dlerror();
        calls = reinterpret_cast<decltype(calls)>(dlsym(library, "simgpu_gdr_calls"));
        settings = reinterpret_cast<decltype(settings)>(dlsym(library, "simgpu_gdr_settings"));
        settings(nullptr);
        CudaTest::SetUp();
        if (primary == nullptr) return;
        if (!gpu.simulated()) GTEST_SKIP() << "the simulated GDRCopy needs the simulated driver";
    }
    void TearDown() override {
        CudaTest::TearDown();
        if (library == nullptr) return;
        settings(nullptr);
        EXPECT_EQ(calls("mapped bytes"), 0u);
    }
    bool ask(CUdeviceptr memory, Bytes bytes = 8) {
        return cuda->has_bar_mapping(classify(pointer(memory), bytes), pointer(memory), bytes);
    }
    // Asks as often as it takes, at most.
    bool open(CUdeviceptr memory, Bytes bytes = 8) {
        for (int i = 0; i < kRepaid; ++i)
            if (ask(memory, bytes)) return true;
        return false;
    }
    Status write(CUdeviceptr memory, const std::vector<std::uint8_t>& data) {
        return by_bar(classify(pointer(memory), data.size()), pointer(memory), data.data(),
                      data.size());
    }
    Status by_bar(const Location& location, void* to, const void* from, Bytes bytes) {
        Completion done(executor);
        cuda->copy({.destination = to,
                    .source = from,
                    .bytes = bytes,
                    .engine = Engine::bar,
                    .allocation = location.buffer_id},
                   done);
        EXPECT_TRUE(done.done());
        return done.status();
    }

    void* library = nullptr;
    decltype(&::simgpu_gdr_calls) calls = nullptr;
    decltype(&::simgpu_gdr_settings) settings = nullptr;
};

TEST_F(CudaBar, OpensWhenTheMessagesHaveCostAsMuchInCopies) {
    const CUdeviceptr memory = allocate(4096);
    const GpuFacts& facts = cuda->gpu_facts(0);
    const auto before = calls("map");
    const auto needed = (facts.bar_open + facts.copy_latency - 1) / facts.copy_latency;
    for (Nanoseconds i = 1; i < needed; ++i)
        EXPECT_FALSE(ask(memory));
    EXPECT_EQ(calls("map"), before);
    EXPECT_TRUE(ask(memory));
    EXPECT_EQ(calls("map"), before + 1);
    EXPECT_TRUE(ask(memory));
    EXPECT_EQ(calls("map"), before + 1);
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaBar, BytesGoThroughItAndNoCopyIsMade) {
    const CUdeviceptr memory = allocate(4096);
    ASSERT_TRUE(open(memory));
    const std::uint64_t copies = cuda->calls().copies;
    const auto data = pattern(300);
    const CUdeviceptr inside = memory + 70;
    EXPECT_TRUE(CudaBar::write(inside, data).ok());
    EXPECT_EQ(CudaTest::read(inside, data.size()), data);
    std::vector<std::uint8_t> back(data.size());
    EXPECT_TRUE(by_bar(classify(pointer(inside), 300), back.data(), pointer(inside), 300).ok());
    EXPECT_EQ(back, data);
    EXPECT_EQ(cuda->calls().copies, copies);
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaBar, OfALargeAllocationOnlyThePartsThatMessagesTouchAreMapped) {
    const CUdeviceptr memory = allocate(64 * kMiB);
    const CUdeviceptr far = memory + 40 * kMiB - 100;
    ASSERT_TRUE(open(memory));
    EXPECT_LE(calls("mapped bytes"), cuda::BarMappings::kPart + 2 * cuda::BarMappings::kLargest);
    EXPECT_FALSE(ask(far, 200));
    ASSERT_TRUE(open(far, 200));  // lies across the boundary of two parts
    const auto data = pattern(200);
    EXPECT_TRUE(CudaBar::write(far, data).ok());
    EXPECT_EQ(CudaTest::read(far, data.size()), data);
    EXPECT_EQ(cuda->bar_mappings().entries(), 2u);
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaBar, AFreedAllocationsMappingIsNotTouched) {
    const CUdeviceptr memory = allocate(4096);
    ASSERT_TRUE(open(memory));
    const Location before = classify(pointer(memory), 8);
    const auto data = pattern(8);
    gpu.cuMemFree_v2(memory);
    // As a message that was received before would do; the mapping is revoked, so touching it would
    // end this process.
    const Status late = by_bar(before, pointer(memory), data.data(), 8);
    EXPECT_EQ(late.error_class(), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_EQ(cuda->bar_mappings().entries(), 0u);
}

TEST_F(CudaBar, MemoryOfAResetContextIsNotTouched) {
    const CUdeviceptr memory = allocate(4096);
    ASSERT_TRUE(open(memory));
    const Location before = classify(pointer(memory), 8);
    const auto data = pattern(8);
    gpu.cuDevicePrimaryCtxReset_v2(0);
    EXPECT_FALSE(by_bar(before, pointer(memory), data.data(), 8).ok());
    CUcontext next = nullptr;
    ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&next, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSetCurrent(next), CUDA_SUCCESS);
    const CUdeviceptr again = allocate(4096);
    ASSERT_TRUE(open(again));
    EXPECT_EQ(cuda->bar_mappings().entries(), 1u);
    gpu.cuMemFree_v2(again);
    gpu.cuDevicePrimaryCtxRelease_v2(0);
}

TEST_F(CudaBar, TheNextAllocationAtAnAddressHasAMappingOfItsOwn) {
    const CUdeviceptr memory = allocate(4096);
    ASSERT_TRUE(open(memory));
    gpu.cuMemFree_v2(memory);
    const CUdeviceptr again = allocate(4096);
    ASSERT_EQ(again, memory) << "the simulated driver gives an address again at once";
    EXPECT_FALSE(ask(again));
    ASSERT_TRUE(open(again));
    EXPECT_EQ(cuda->bar_mappings().entries(), 1u);  // the old one went as the new one was opened
    const auto data = pattern(64);
    EXPECT_TRUE(CudaBar::write(again, data).ok());
    EXPECT_EQ(CudaTest::read(again, data.size()), data);
    gpu.cuMemFree_v2(again);
}

TEST_F(CudaBar, TheOneUnusedForLongestMakesRoom) {
    constexpr int kMany = 70;  // more than are kept
    std::vector<CUdeviceptr> memory;
    for (int i = 0; i < kMany; ++i) {
        memory.push_back(allocate(4096));
        ASSERT_TRUE(open(memory.back()));
        EXPECT_TRUE(ask(memory.front()));  // used again and again
    }
    EXPECT_EQ(cuda->bar_mappings().entries(), 64u);
    EXPECT_TRUE(ask(memory.front()));
    EXPECT_TRUE(ask(memory.back()));
    EXPECT_FALSE(ask(memory[1]));  // has to repay itself again
    for (const CUdeviceptr each : memory)
        gpu.cuMemFree_v2(each);
}

TEST_F(CudaBar, BytesAreBoundedToo) {
    std::vector<CUdeviceptr> memory;
    for (int i = 0; i < 40; ++i) {
        memory.push_back(allocate(2 * kMiB));
        ASSERT_TRUE(open(memory.back()));
        EXPECT_LE(calls("mapped bytes"), 64 * kMiB);
    }
    EXPECT_EQ(cuda->bar_mappings().bytes(), calls("mapped bytes"));
    for (const CUdeviceptr each : memory)
        gpu.cuMemFree_v2(each);
}

TEST_F(CudaBar, RefusalsAreRememberedAndEverythingIsCopied) {
    for (const char* refusal : {"refuse=pin", "refuse=map", "bar=1000"}) {
        settings(refusal);
        const CUdeviceptr memory = allocate(4096);
        EXPECT_FALSE(open(memory)) << refusal;
        const auto asked = calls("pin");
        EXPECT_FALSE(open(memory)) << refusal;
        EXPECT_EQ(calls("pin"), asked) << refusal;
        const auto data = pattern(8);
        EXPECT_EQ(CudaBar::write(memory, data).error_class(), MPI_ERR_UNSUPPORTED_OPERATION);
        EXPECT_TRUE(copy({pointer(memory), data.data(), 8, 0, Engine::h2d}).ok());
        EXPECT_EQ(CudaTest::read(memory, 8), data);
        gpu.cuMemFree_v2(memory);
    }
}

TEST_F(CudaBar, PoolsAndVirtualMemoryStayWithTheCopyEngines) {
    for (const IpcKind kind : {IpcKind::pool, IpcKind::vmm}) {
        const CUdeviceptr memory = allocate(kind, 4096);
        EXPECT_FALSE(open(memory));
        if (kind == IpcKind::vmm) CudaTest::free(memory);
    }
}

// A page of the GPU holds both: the whole page would be mapped, and the pool's part of it not be there.
TEST_F(CudaBar, APoolsMemoryBesideOthersInAPageHasNoneEither) {
    std::vector<CUdeviceptr> neighbours;
    for (int i = 0; i < 4; ++i)
        neighbours.push_back(allocate(IpcKind::legacy, 4096));
    const CUdeviceptr memory = allocate(IpcKind::pool, 4096);
    for (int i = 0; i < 4; ++i)
        neighbours.push_back(allocate(IpcKind::legacy, 4096));
    EXPECT_FALSE(open(memory));
    for (const CUdeviceptr neighbour : neighbours)
        CudaTest::free(neighbour);
}

TEST_F(CudaBar, ThereAreNoneWithoutTheModuleOrSwitchedOff) {
    EXPECT_TRUE(cuda->has_bar_mapping({}, nullptr, 0));
    cuda.reset();
    settings("refuse=open");
    make_device();
    const CUdeviceptr memory = allocate(4096);
    EXPECT_FALSE(cuda->has_bar_mapping({}, nullptr, 0));
    EXPECT_FALSE(open(memory));
    cuda.reset();
    settings(nullptr);
    config.gdrcopy = "off";
    make_device();
    const auto opened = calls("open");
    EXPECT_FALSE(cuda->has_bar_mapping({}, nullptr, 0));
    EXPECT_FALSE(open(memory));
    EXPECT_EQ(calls("open"), opened);  // not even looked for
    gpu.cuMemFree_v2(memory);
}

TEST_F(CudaBar, NoneIsOpenedWhileCopiesAreInFlight) {
    const CUdeviceptr memory = allocate(4096), other = allocate(kMiB);
    classify(pointer(other), kMiB);
    Completion done(executor);
    cuda->copy({pointer(other), pointer(other + 8), 8, 0, Engine::d2d}, done);
    ASSERT_TRUE(cuda->pending());
    for (int each = 0; each < kRepaid; ++each)
        EXPECT_FALSE(ask(memory));
    finish(done);
    EXPECT_TRUE(ask(memory));
    gpu.cuMemFree_v2(memory);
    gpu.cuMemFree_v2(other);
}

}  // namespace
}  // namespace gantry::device

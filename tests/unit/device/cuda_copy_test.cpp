// SPDX-License-Identifier: BSD-3-Clause
//
// Copies: the right bytes by every engine, exact costs, and every way in which a driver can let us
// down.
#include "cuda_fixture.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace gantry::device {
namespace {

using testing_support::CudaTest;
using testing_support::pointer;

struct CudaCopies : CudaTest {
    static constexpr std::size_t kBytes = 150001;
    void SetUp() override {
        CudaTest::SetUp();
        if (primary == nullptr) return;
        ASSERT_EQ(gpu.cuMemAllocHost_v2(&host, kBytes), CUDA_SUCCESS);
        first = allocate(kBytes);
        second = allocate(kBytes);
        classify(pointer(first), kBytes);
        classify(pointer(second), kBytes);
    }
    void TearDown() override {
        if (primary != nullptr) {
            gpu.cuCtxSetCurrent(primary);
            gpu.cuMemFree_v2(first);
            gpu.cuMemFree_v2(second);
            gpu.cuMemFreeHost(host);
        }
        CudaTest::TearDown();
    }
    void fill_host(const std::vector<std::uint8_t>& data) {
        std::memcpy(host, data.data(), data.size());
    }
    std::vector<std::uint8_t> host_bytes(std::size_t bytes) {
        const auto* begin = static_cast<std::uint8_t*>(host);
        return {begin, begin + bytes};
    }
    void need_faults() {
        if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    }

    void* host = nullptr;
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
};

TEST_F(CudaCopies, EveryEngineMovesTheBytesForEverySmallAndOddSize) {
    for (const std::size_t bytes : {1u, 2u, 3u, 7u, 8u, 1000u, 1001u, 32767u, 100001u}) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes");
        const auto data = pattern(bytes);
        for (const Engine engine : {Engine::h2d, Engine::h2d_2d, Engine::automatic}) {
            gpu.fill(first, 0, kBytes);
            fill_host(data);
            ASSERT_TRUE(copy({pointer(first), host, bytes, 0, engine}).ok());
            EXPECT_EQ(read(first, bytes), data);
        }
        for (const Engine engine : {Engine::d2d, Engine::automatic}) {
            gpu.fill(second, 0, kBytes);
            ASSERT_TRUE(copy({pointer(second), pointer(first), bytes, 0, engine}).ok());
            EXPECT_EQ(read(second, bytes), data);
        }
        for (const Engine engine : {Engine::d2h, Engine::automatic}) {
            std::memset(host, 0, kBytes);
            ASSERT_TRUE(copy({host, pointer(second), bytes, 0, engine}).ok());
            EXPECT_EQ(host_bytes(bytes), data);
        }
    }
}

TEST_F(CudaCopies, TwoRowsLeaveTheBytesAroundThemAlone) {
    gpu.fill(first, 0xee, kBytes);
    fill_host(pattern(101));
    ASSERT_TRUE(copy({pointer(first + 10), host, 101, 0, Engine::h2d_2d}).ok());
    const auto around = read(first, 200);
    EXPECT_EQ(around[9], 0xee);
    EXPECT_EQ(around[111], 0xee);
}

// Without MPS small ones would wait for turns of a compute queue that others use. An odd size is two
// calls in rows.
TEST_F(CudaCopies, SmallOnesIntoAGpuThatOthersUseGoInRows) {
    struct Others final : Neighbours {
        bool use(const Uuid&) const override { return there; }
        bool there = false;
    } others;
    const Bytes limit = cuda->gpu_facts(0).turns_below(MemoryKind::host);
    if (limit == 0) GTEST_SKIP() << "no turns of its compute queue are known";
    ASSERT_GE(limit, 4096u);
    ASSERT_LT(limit, kBytes) << "of larger copies, too: make the buffers larger";
    CUdeviceptr managed = 0;
    ASSERT_EQ(gpu.cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    classify(pointer(managed), kBytes);
    cuda->meet(&others);
    std::vector<std::uint8_t> pageable = pattern(kBytes);
    fill_host(pageable);
    const void* const ends[] = {pageable.data(), host};
    const Bytes odd = limit / 2 | 1, large = limit | 1;
    for (const bool there : {false, true}) {
        others.there = there;
        for (const void* from : ends)
            for (const CUdeviceptr to : {first, managed})
                for (const Engine engine : {Engine::h2d, Engine::automatic})
                    for (const Bytes bytes : {Bytes{2}, Bytes{3}, Bytes{102}, odd, large}) {
                        gpu.fill(to, 0xee, kBytes);
                        const std::uint64_t before = cuda->calls().copies;
                        ASSERT_TRUE(copy({pointer(to), from, bytes, 0, engine}).ok());
                        const bool rows = there && bytes % 2 == 1 && bytes < limit;
                        EXPECT_EQ(cuda->calls().copies - before, rows ? 2u : 1u) << bytes;
                        EXPECT_EQ(read(to, bytes), pattern(bytes)) << bytes;
                        EXPECT_EQ(read(to, bytes + 1).back(), 0xee) << bytes;
                    }
    }
    cuda->meet(nullptr);
    gpu.cuMemFree_v2(managed);
}

TEST_F(CudaCopies, PageableAndHostOnlyCopiesWork) {
    std::vector<std::uint8_t> pageable = pattern(5000, 3);
    ASSERT_TRUE(copy({pointer(first), pageable.data(), 5000, 0, Engine::automatic}).ok());
    std::vector<std::uint8_t> back(5000);
    ASSERT_TRUE(copy({back.data(), pointer(first), 5000, 0, Engine::automatic}).ok());
    EXPECT_EQ(back, pageable);
    std::vector<std::uint8_t> other(5000);
    ASSERT_TRUE(copy({other.data(), pageable.data(), 5000, 0, Engine::automatic}).ok());
    EXPECT_EQ(other, pageable);
}

// What was known of an end may have been forgotten: the processor must not take it for the host's.
TEST_F(CudaCopies, ADeviceEndThatIsNotKnownIsAskedAbout) {
    const CUdeviceptr known = allocate(64), forgotten = allocate(64);
    classify(pointer(known), 64);
    write(forgotten, pattern(64));
    EXPECT_TRUE(copy({pointer(known), pointer(forgotten), 8, 0, Engine::automatic}).ok());
    EXPECT_EQ(read(known, 8), pattern(8));
    write(known, pattern(64, 3));
    const CUdeviceptr another = allocate(64);
    EXPECT_TRUE(copy({pointer(another), pointer(known), 8, 0, Engine::automatic}).ok());
    EXPECT_EQ(read(another, 8), pattern(8, 3));
    for (const CUdeviceptr memory : {known, forgotten, another})
        free(memory);
}

TEST_F(CudaCopies, NoBytesAreDoneAtOnceWithoutADriverCall) {
    const std::uint64_t before = cuda->calls().total();
    EXPECT_TRUE(copy({pointer(first), host, 0, 0, Engine::h2d}).ok());
    EXPECT_EQ(cuda->calls().total(), before);
}

TEST_F(CudaCopies, AWarmCopyCostsOneCopyOneRecordAndOneQuery) {
    ASSERT_TRUE(copy({host, pointer(first), 100, 0, Engine::d2h}).ok());
    const cuda::Calls before = cuda->calls();
    Completion done(executor);
    cuda->copy({host, pointer(first), 100, 0, Engine::d2h}, done);
    EXPECT_TRUE(cuda->pending());
    ASSERT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuda->progress(), 1);
    EXPECT_TRUE(done.done());
    const cuda::Calls& after = cuda->calls();
    EXPECT_EQ(after.copies - before.copies, 1u);
    EXPECT_EQ(after.completions - before.completions, 2u);
    EXPECT_EQ(after.queries - before.queries, 0u);
    EXPECT_EQ(after.setups - before.setups, 0u);
    EXPECT_EQ(after.synchronizations - before.synchronizations, 0u);
    EXPECT_FALSE(cuda->pending());
}

// The stream writes it, and the flag behind it. (A flag that is not there in time is doubted, which
// costs a query: so it is waited for by other means.)
TEST_F(CudaCopies, AnAlignedWordFromTheHostCostsOneCallAndALook) {
    for (const std::size_t bytes : {4u, 8u}) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes");
        gpu.fill(first, 0xee, 32);
        fill_host(pattern(8, 0x90));  // the highest bit of each byte is set
        ASSERT_TRUE(copy({pointer(first), host, bytes, 0, Engine::h2d}).ok());
        const cuda::Calls before = cuda->calls();
        fill_host(pattern(8, 0xa3));
        Completion done(executor);
        cuda->copy({pointer(first + 8), host, bytes, 0, Engine::h2d}, done);
        ASSERT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);
        EXPECT_EQ(cuda->progress(), 1);
        EXPECT_TRUE(done.done());
        EXPECT_EQ(cuda->calls().copies - before.copies, 1u);
        EXPECT_EQ(cuda->calls().completions - before.completions, 0u);
        std::vector<std::uint8_t> expected(32, 0xee);
        std::ranges::copy(pattern(bytes, 0x90), expected.begin());
        std::ranges::copy(pattern(bytes, 0xa3), expected.begin() + 8);
        EXPECT_EQ(read(first, 32), expected);
    }
}

TEST_F(CudaCopies, WhatIsNoAlignedWordOfDeviceMemoryIsCopied) {
    CUdeviceptr managed = 0;
    ASSERT_EQ(gpu.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    classify(pointer(managed), 64);
    fill_host(pattern(64));
    const std::pair<CUdeviceptr, std::size_t> wheres[] = {
        {first + 4, 8}, {first + 2, 4}, {first, 5}, {first, 16}, {managed, 8}};
    for (const auto& [where, bytes] : wheres) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes at " << where % 64);
        const std::uint64_t before = cuda->calls().completions;
        ASSERT_TRUE(copy({pointer(where), host, bytes, 0, Engine::h2d}).ok());
        EXPECT_GE(cuda->calls().completions - before, 2u) << "an event";
        EXPECT_EQ(read(where, bytes), pattern(bytes));
    }
    EXPECT_EQ(gpu.cuMemFree_v2(managed), CUDA_SUCCESS);
}

TEST_F(CudaCopies, AWordThatTheDriverRefusesToWriteIsCopiedAndNoneIsTriedAgain) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    ASSERT_EQ(gpu.simgpu_fault("cuStreamBatchMemOp_v2:1:801"), 0);
    for (int i = 0; i < 2; ++i) {
        fill_host(pattern(8, 5));
        const std::uint64_t before = cuda->calls().copies;
        ASSERT_TRUE(copy({pointer(first + 8 * i), host, 8, 0, Engine::h2d}).ok());
        EXPECT_EQ(cuda->calls().copies - before, i == 0 ? 2u : 1u);
        EXPECT_EQ(read(first + 8 * i, 8), pattern(8, 5));
    }
}

// Its reader, here this test, needs nothing of the process that asked for the copy; and that one
// asks the driver for no event.
TEST_F(CudaCopies, AWordThatACopyNamesIsWrittenBehindItsBytes) {
    alignas(4096) static std::uint32_t page[1024];
    ASSERT_TRUE(copy({host, pointer(first), 100, 0, Engine::d2h}).ok());
    ASSERT_TRUE(cuda->pin(page, sizeof page).ok());
    write(first, pattern(kBytes));
    for (const std::uint32_t number : {7u, 8u, 0xffffffffu, 1u}) {
        std::memset(host, 0, kBytes);
        const cuda::Calls before = cuda->calls();
        Copy order{host, pointer(first), kBytes, 0, Engine::d2h};
        order.word = &page[16];
        order.number = number;
        Completion done(executor);
        cuda->copy(order, done);
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (__atomic_load_n(&page[16], __ATOMIC_ACQUIRE) != number &&
               std::chrono::steady_clock::now() < limit)
            std::this_thread::yield();
        ASSERT_EQ(page[16], number);
        EXPECT_EQ(host_bytes(kBytes), pattern(kBytes));
        EXPECT_EQ(cuda->progress(), 1);
        EXPECT_TRUE(done.done() && done.status().ok());
        EXPECT_EQ(cuda->calls().completions - before.completions, 1u) << "the word";
    }
    EXPECT_EQ(page[15] + page[17], 0u);
    cuda->unpin(page);
}

TEST_F(CudaCopies, AWordThatNoDeviceReachesIsLeftToTheProcessor) {
    alignas(4096) static std::uint32_t page[1024];
    std::uint32_t word = 0;  // not page-locked
    ASSERT_TRUE(copy({host, pointer(first), 100, 0, Engine::d2h}).ok());
    ASSERT_TRUE(cuda->pin(page, sizeof page).ok());
    for (std::uint32_t* const where : {&word, &page[0]}) {
        Copy order{host, pointer(first), 100, 0, Engine::d2h};
        order.word = where;
        order.number = 5;
        EXPECT_TRUE(copy(order).ok());
    }
    EXPECT_EQ(word, 0u);
    EXPECT_EQ(page[0], 5u) << "the driver was asked for the impossible, and flags are off since";
    cuda->unpin(page);
}

TEST_F(CudaCopies, ProgressWithoutPendingCopiesMakesNoDriverCall) {
    ASSERT_TRUE(copy({host, pointer(first), 100, 0, Engine::d2h}).ok());
    const std::uint64_t before = cuda->calls().total();
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(cuda->progress(), 0);
    EXPECT_EQ(cuda->calls().total(), before);
}

TEST_F(CudaCopies, ManyCopiesOfALaneCompleteInOrder) {
    std::vector<std::unique_ptr<Completion>> done;
    for (int i = 0; i < 50; ++i) {
        done.push_back(std::make_unique<Completion>(executor));
        cuda->copy({host, pointer(first), 2000, 0, Engine::d2h}, *done.back());
    }
    for (std::size_t finished = 0; finished < done.size();) {
        cuda->progress();
        while (finished < done.size() && done[finished]->done())
            ++finished;
        for (std::size_t later = finished; later < done.size(); ++later)
            ASSERT_FALSE(done[later]->done()) << later << " before " << finished;
    }
}

TEST_F(CudaCopies, TheThreadsContextIsWhatItWas) {
    CUcontext current = nullptr;
    ASSERT_TRUE(copy({host, pointer(first), 100, 0, Engine::d2h}).ok());
    gpu.cuCtxGetCurrent(&current);
    EXPECT_EQ(current, primary);
    std::thread other([&] {
        EXPECT_TRUE(copy({host, pointer(first), 100, 0, Engine::d2h}).ok());
        CUcontext none = primary;
        gpu.cuCtxGetCurrent(&none);
        EXPECT_EQ(none, nullptr);
    });
    other.join();
}

TEST_F(CudaCopies, ACaptureOfTheProgramIsNotBroken) {
    CUstream stream = nullptr;
    ASSERT_EQ(gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    classify(pointer(first), 100);
    EXPECT_TRUE(copy({host, pointer(first), 100, 0, Engine::d2h}).ok());
    CUgraph graph = nullptr;
    EXPECT_EQ(gpu.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    if (graph != nullptr) gpu.cuGraphDestroy(graph);
    gpu.cuStreamDestroy_v2(stream);
}

TEST_F(CudaCopies, ARefusedCopyCompletesWithAnErrorThatNamesItAndTheNextOneWorks) {
    need_faults();
    if (!gpu.simulated()) return;
    ASSERT_EQ(gpu.simgpu_fault("cuMemcpyDtoHAsync_v2:1:1"), 0);
    const Status status = copy({host, pointer(first), 1234, 0, Engine::d2h});
    EXPECT_EQ(status.error_class(), MPI_ERR_BUFFER);
    for (const char* part :
         {"cuMemcpyDtoHAsync", "1234 bytes", "GPU 0", "CUDA_ERROR_INVALID_VALUE"})
        EXPECT_NE(status.text().find(part), std::string_view::npos) << status.text();
    EXPECT_TRUE(copy({host, pointer(first), 1234, 0, Engine::d2h}).ok());
}

TEST_F(CudaCopies, AnAllocationThatFailsInTheDriverIsNoMemory) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    ASSERT_EQ(gpu.simgpu_fault("cuStreamCreateWithPriority:*:2"), 0);
    EXPECT_EQ(copy({host, pointer(first), 10, 0, Engine::d2h}).error_class(), MPI_ERR_NO_MEM);
    gpu.simgpu_fault(nullptr);
    EXPECT_TRUE(copy({host, pointer(first), 10, 0, Engine::d2h}).ok());
}

TEST_F(CudaCopies, WithoutEventsTheStreamTellsTheEnd) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    ASSERT_EQ(gpu.simgpu_fault("cuEventCreate:*:2"), 0);
    const auto data = pattern(3000);
    write(first, data);
    ASSERT_TRUE(copy({host, pointer(first), 3000, 0, Engine::d2h}).ok());
    EXPECT_EQ(host_bytes(3000), data);
    gpu.simgpu_fault(nullptr);
    ASSERT_EQ(gpu.simgpu_fault("cuEventRecord:1:1"), 0);
    EXPECT_TRUE(copy({host, pointer(first), 3000, 0, Engine::d2h}).ok());
}

TEST_F(CudaCopies, AnEventThatFailsIsAnErrorOnceTheStreamIsDone) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    ASSERT_EQ(gpu.simgpu_fault("cuEventQuery:1:999"), 0);
    const Status status = copy({host, pointer(first), 3000, 0, Engine::d2h});
    EXPECT_EQ(status.error_class(), MPI_ERR_OTHER);
    EXPECT_NE(status.text().find("cuEventQuery"), std::string_view::npos) << status.text();
    EXPECT_TRUE(copy({host, pointer(first), 3000, 0, Engine::d2h}).ok());
}

TEST_F(CudaCopies, AHalfStartedTwoRowCopyEndsBeforeItsErrorIsTold) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    ASSERT_TRUE(copy({pointer(first), host, 101, 0, Engine::h2d_2d}).ok());
    ASSERT_EQ(gpu.simgpu_fault("cuMemcpy2DAsync_v2:2:1"), 0);
    const std::uint64_t looks = cuda->calls().completions;
    EXPECT_EQ(copy({pointer(first), host, 101, 0, Engine::h2d_2d}).error_class(), MPI_ERR_BUFFER);
    EXPECT_GT(cuda->calls().completions, looks) << "the first half was awaited";
}

TEST_F(CudaCopies, ADriverThatIsTornDownFailsEverythingAndIsNotAskedAgain) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    ASSERT_TRUE(copy({host, pointer(first), 10, 0, Engine::d2h}).ok());
    ASSERT_EQ(gpu.simgpu_fault("cuCtxPushCurrent_v2:*:4"), 0);
    EXPECT_FALSE(copy({host, pointer(first), 10, 0, Engine::d2h}).ok());
    gpu.simgpu_fault(nullptr);
    EXPECT_FALSE(cuda->active());
    const std::uint64_t before = cuda->calls().total();
    EXPECT_FALSE(copy({host, pointer(first), 10, 0, Engine::d2h}).ok());
    cuda->progress();
    cuda->shut_down();
    EXPECT_EQ(cuda->calls().total(), before);
}

struct CopiesBetweenGpus : CudaCopies {
    void SetUp() override {
        CudaCopies::SetUp();
        if (primary == nullptr) return;
        if (cuda->gpu_count() < 2) GTEST_SKIP() << "one GPU";
        CUcontext other = nullptr;
        ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
        gpu.cuCtxSetCurrent(other);
        far = allocate(kBytes);
        gpu.cuCtxSetCurrent(primary);
        classify(pointer(far), kBytes);
    }
    void TearDown() override {
        if (far != 0) {
            cuda->shut_down();
            gpu.cuMemFree_v2(far);
            gpu.cuDevicePrimaryCtxRelease_v2(1);
        }
        CudaCopies::TearDown();
    }
    CUdeviceptr far = 0;
};

TEST_F(CopiesBetweenGpus, OfOneProcessMoveBytesWithoutPeerAccess) {
    const auto data = pattern(kBytes, 9);
    write(first, data);
    for (const Engine engine : {Engine::peer, Engine::automatic}) {
        for (const int executor_gpu : {0, 1}) {
            gpu.fill(second, 0, kBytes);
            EXPECT_TRUE(copy({pointer(far), pointer(first), kBytes, executor_gpu, engine}).ok());
            EXPECT_TRUE(copy({pointer(second), pointer(far), kBytes, executor_gpu, engine}).ok());
            EXPECT_EQ(read(second, kBytes), data);
        }
    }
}

// A link moves bytes both ways at once: what leaves does not wait behind what comes.
TEST_F(CopiesBetweenGpus, ThereAndBackHaveAStreamEach) {
    const Copy there{pointer(far), pointer(first), kBytes, 0, Engine::peer};
    const Copy back{pointer(second), pointer(far), kBytes, 0, Engine::peer};
    ASSERT_TRUE(copy(there).ok());
    const std::uint64_t one = cuda->calls().setups;
    ASSERT_TRUE(copy(back).ok());
    const std::uint64_t two = cuda->calls().setups;
    EXPECT_GT(two, one) << "a stream was created";
    ASSERT_TRUE(copy(there).ok());
    ASSERT_TRUE(copy(back).ok());
    EXPECT_EQ(cuda->calls().setups, two);
}

}  // namespace
}  // namespace gantry::device

// SPDX-License-Identifier: BSD-3-Clause
//
// Small copies that wait for each other and go in one kernel: right bytes at every size and
// alignment, exact numbers of launches, and a form without kernels and without flags.
#include "cuda_fixture.hpp"

#include <deque>

namespace gantry::device {
namespace {

using testing_support::CudaTest;
using testing_support::pointer;

struct CudaFused : CudaTest {
    static constexpr Bytes kBytes = Bytes{1} << 20;
    // Copies of sizes and alignments of every kind, all posted at once; the number of launches.
    std::uint64_t copy_all(int count) {
        const CUdeviceptr from = allocate(kBytes), to = allocate(kBytes);
        write(from, pattern(kBytes));
        gpu.fill(to, 0, kBytes);
        classify(pointer(from), kBytes);
        classify(pointer(to), kBytes);
        const std::uint64_t before = cuda->calls().launches;
        std::vector<std::uint8_t> expected(kBytes, 0);
        const std::vector<std::uint8_t> data = pattern(kBytes);
        std::deque<Completion> done;
        Bytes at = 0;
        for (int i = 0; i < count; ++i) {
            const Bytes bytes = 1 + static_cast<Bytes>(i) * 131 % 6000;
            const Bytes offset = at + static_cast<Bytes>(i % 5);
            std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(offset), bytes,
                        expected.begin() + static_cast<std::ptrdiff_t>(offset));
            done.emplace_back(executor);
            cuda->copy({pointer(to + offset), pointer(from + offset), bytes, 0, Engine::fused},
                       done.back());
            at = (offset + bytes + 15) & ~Bytes{15};
        }
        while (cuda->pending())
            cuda->progress();
        for (const Completion& each : done)
            EXPECT_TRUE(each.done() && each.status().ok());
        EXPECT_EQ(read(to, kBytes), expected);
        gpu.cuMemFree_v2(from);
        gpu.cuMemFree_v2(to);
        return cuda->calls().launches - before;
    }
};

TEST_F(CudaFused, OneAloneIsACopy) {
    EXPECT_EQ(copy_all(1), 0u);
}

TEST_F(CudaFused, ThoseBehindItShareALaunch) {
    EXPECT_EQ(copy_all(33), 1u) << "32 wait: they fit into the small form";
    EXPECT_EQ(copy_all(34), 1u);
    EXPECT_EQ(copy_all(65), 1u);
    EXPECT_EQ(copy_all(129), 1u);
    EXPECT_EQ(copy_all(200), 2u) << "one launch holds 128";
}

TEST_F(CudaFused, MuchThatWaitsIsLaunchedBehindWhatIsInFlight) {
    constexpr Bytes kPiece = 64 * kKiB;
    constexpr Bytes kPieces = 100;
    const CUdeviceptr from = allocate(kPieces * kPiece), to = allocate(kPieces * kPiece);
    write(from, pattern(kPieces * kPiece));
    classify(pointer(from), kPieces * kPiece);
    classify(pointer(to), kPieces * kPiece);
    const std::uint64_t before = cuda->calls().launches;
    std::deque<Completion> done;
    for (Bytes i = 0; i < kPieces; ++i) {
        done.emplace_back(executor);
        cuda->copy({pointer(to + i * kPiece), pointer(from + i * kPiece), kPiece, 0, Engine::fused},
                   done.back());
        // The first one flies alone, the next 32 are 2 MiB.
        EXPECT_EQ(cuda->calls().launches - before, i < 32 ? 0u : 1u) << i;
    }
    while (cuda->pending())
        cuda->progress();
    for (const Completion& each : done)
        EXPECT_TRUE(each.done() && each.status().ok());
    EXPECT_LE(cuda->calls().launches - before, 3u);
    EXPECT_EQ(read(to, kPieces * kPiece), pattern(kPieces * kPiece));
    gpu.cuMemFree_v2(from);
    gpu.cuMemFree_v2(to);
}

TEST_F(CudaFused, WithoutKernelsTheyAreCopiesInOneCall) {
    config.kernels = false;
    make_device();
    const std::uint64_t before = cuda->calls().copies;
    EXPECT_EQ(copy_all(65), 0u);
    EXPECT_EQ(cuda->calls().copies - before, 2u);
}

// Too large for a kernel.
struct CudaTogether : CudaTest {
    static constexpr Bytes kPiece = 512 * kKiB;
    void SetUp() override {
        CudaTest::SetUp();
        if (primary == nullptr) return;
        from = allocate(kMost * kPiece);
        to = allocate(kMost * kPiece);
        write(from, pattern(kMost * kPiece));
        classify(pointer(from), kMost * kPiece);
        classify(pointer(to), kMost * kPiece);
    }
    void TearDown() override {
        if (primary != nullptr && from != 0) {
            gpu.cuMemFree_v2(from);
            gpu.cuMemFree_v2(to);
        }
        CudaTest::TearDown();
    }
    // The driver's calls for that many copies, of which others are expected to follow.
    std::uint64_t copy_all(Bytes count, Notice notice = Notice::event) {
        gpu.fill(to, 0, kMost * kPiece);
        const std::uint64_t before = cuda->calls().copies;
        start(count, notice);
        cuda->flush_batch(BatchHint::none);
        while (cuda->pending())
            cuda->progress();
        for (const Completion& each : done)
            EXPECT_TRUE(each.done() && each.status().ok());
        EXPECT_EQ(read(to, count * kPiece), pattern(count * kPiece));
        return cuda->calls().copies - before;
    }
    void start(Bytes count, Notice notice = Notice::event) {
        while (cuda->pending())
            cuda->progress();
        done.clear();
        for (Bytes i = 0; i < count; ++i) {
            done.emplace_back(executor);
            cuda->copy({pointer(to + i * kPiece), pointer(from + i * kPiece), kPiece, 0,
                        Engine::fused, notice, BatchHint::expected},
                       done.back());
        }
    }
    static constexpr Bytes kMost = 80;
    CUdeviceptr from = 0, to = 0;
    std::deque<Completion> done;
};

TEST_F(CudaTogether, SeveralThatComeTogetherAreOneCall) {
    EXPECT_EQ(copy_all(1), 1u);
    for (const Notice notice : {Notice::event, Notice::flag}) {
        EXPECT_EQ(copy_all(7, notice), 1u);
        EXPECT_EQ(copy_all(33, notice), 2u) << "16 MiB are in one call";
        EXPECT_EQ(copy_all(80, notice), 3u);
    }
    EXPECT_EQ(cuda->calls().launches, 0u);
}

// Where a kernel would wait for a turn of the compute queue, or go byte by byte.
TEST_F(CudaTogether, SmallOnesShareACallToo) {
    struct Everybody final : Neighbours {
        bool use(const Uuid&) const override { return true; }
    } everybody;
    const bool turns = cuda->gpu_facts(0).queue_turn > 0;
    struct Kind {
        Bytes bytes, askew;
        const Neighbours* neighbours;
        std::uint64_t launches;
    };
    for (const Kind& kind :
         {Kind{100000, 0, nullptr, 1}, Kind{100000, 1, nullptr, 0}, Kind{8, 1, &everybody, 1},
          Kind{100000, 0, &everybody, turns ? 0u : 1u}}) {
        cuda->meet(kind.neighbours);
        done.clear();
        const std::uint64_t copies = cuda->calls().copies, launches = cuda->calls().launches;
        for (Bytes i = 0; i < 5; ++i) {
            done.emplace_back(executor);
            const Bytes at = i * kPiece + kind.askew;
            cuda->copy({pointer(to + at), pointer(from + at), kind.bytes, 0, Engine::fused,
                        Notice::event, BatchHint::expected},
                       done.back());
        }
        cuda->flush_batch(BatchHint::none);
        while (cuda->pending())
            cuda->progress();
        EXPECT_EQ(cuda->calls().launches - launches, kind.launches) << kind.bytes;
        EXPECT_EQ(cuda->calls().copies - copies, 1 - kind.launches) << kind.bytes;
    }
    cuda->meet(nullptr);
}

TEST_F(CudaTogether, WhatTheDriverRefusesGoesOneByOneFromThenOn) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    gpu.simgpu_fault("cuMemcpyBatchAsync:1:801");
    EXPECT_EQ(copy_all(5), 6u) << "one in vain";
    gpu.simgpu_fault(nullptr);
    const std::uint64_t before = cuda->calls().copies;
    start(5);
    EXPECT_EQ(cuda->calls().copies - before, 5u) << "nothing is gained by waiting for others";
    EXPECT_EQ(copy_all(5), 5u);
}

TEST_F(CudaTogether, ManagedMemoryIsCopiedByItself) {
    CUdeviceptr managed = 0;
    ASSERT_EQ(gpu.cuMemAllocManaged(&managed, 2 * kPiece, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    classify(pointer(managed), 2 * kPiece);
    const auto start = [&](Bytes at, Bytes bytes) {
        done.emplace_back(executor);
        cuda->copy({pointer(managed + at), pointer(from + at), bytes, 0, Engine::fused,
                    Notice::event, BatchHint::expected},
                   done.back());
    };
    start(0, 64);  // its way is not that of larger ones
    cuda->flush_batch(BatchHint::none);
    const std::uint64_t before = cuda->calls().copies;
    start(0, kPiece);
    start(kPiece, kPiece);
    EXPECT_EQ(cuda->calls().copies - before, 2u);
    while (cuda->pending())
        cuda->progress();
    EXPECT_EQ(read(managed, 2 * kPiece), pattern(2 * kPiece));
    EXPECT_EQ(gpu.cuMemFree_v2(managed), CUDA_SUCCESS);
}

TEST_F(CudaTogether, InAContextThatIsDestroyedEachEndsWithAnError) {
    start(5);
    cuda->flush_batch(BatchHint::none);
    ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    from = to = 0;
    while (cuda->pending())
        cuda->progress();
    for (const Completion& each : done) {
        EXPECT_TRUE(each.done());
        EXPECT_FALSE(each.status().ok());
    }
}

// Found dead by the call itself.
TEST_F(CudaTogether, ADeadContextThatTheCallFindsIsLeftAndTheyGoInTheNext) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    start(5);
    gpu.simgpu_fault("cuMemcpyBatchAsync:1:709,cuMemcpyDtoDAsync_v2:1:709");
    cuda->flush_batch(BatchHint::none);
    while (cuda->pending())
        cuda->progress();
    gpu.simgpu_fault(nullptr);
    for (const Completion& each : done)
        EXPECT_TRUE(each.done() && each.status().ok()) << each.status().text();
    EXPECT_EQ(read(to, 5 * kPiece), pattern(5 * kPiece));
}

TEST_F(CudaFused, WithoutFlagsForCopiesKernelsStillRaiseTheirs) {
    config.flags = false;
    make_device();
    EXPECT_EQ(copy_all(65), 1u);
}

// The second of them goes the way of the first, until what that led through is gone.
TEST_F(CudaFused, TheWayOfTheLastCopyEndsWithItsContextAndItsMemory) {
    for (int life = 0; life < 2; ++life) {
        const CUdeviceptr from = allocate(4096), to = allocate(4096);
        write(from, pattern(4096, static_cast<unsigned>(life)));
        classify(pointer(from), 4096);
        classify(pointer(to), 4096);
        // Finds that the context of before is dead, and drops what was in it.
        std::uint8_t host[64] = {};
        EXPECT_TRUE(copy({host, pointer(from), 64, 0, Engine::d2h}).ok());
        for (const Bytes half : {0, 2048}) {
            const Status copied =
                copy({pointer(to + half), pointer(from + half), 2048, 0, Engine::fused});
            EXPECT_TRUE(copied.ok()) << copied.text();
        }
        EXPECT_EQ(read(to, 4096), pattern(4096, static_cast<unsigned>(life)));
        // Beyond its allocation the last way says nothing.
        EXPECT_TRUE(copy({host, pointer(to), 64, 0, Engine::fused}).ok());
        EXPECT_EQ(std::memcmp(host, pattern(4096, static_cast<unsigned>(life)).data(), 64), 0);
        reset_context();
    }
}

// Copies that go one by one: the first is refused, and at the next one the context is found dead.
TEST_F(CudaFused, ACopyThatWasRefusedEndsOnceWhenTheContextIsFoundDeadBehindIt) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    config.kernels = false;
    make_device();
    constexpr int kCopies = 5;
    const CUdeviceptr from = allocate(4096), to = allocate(4096);
    classify(pointer(from), 4096);
    classify(pointer(to), 4096);
    std::deque<Completion> done;
    const auto start = [&](int i) {
        done.emplace_back(executor);
        const Bytes at = static_cast<Bytes>(i) * 64;
        cuda->copy({pointer(to + at), pointer(from + at), 64, 0, Engine::fused}, done.back());
    };
    start(0);  // flies alone: the others wait for its end
    for (int i = 1; i < kCopies; ++i)
        start(i);
    gpu.simgpu_fault(
        "cuMemcpyBatchAsync:1:801,cuMemcpyDtoDAsync_v2:1:1,cuMemcpyDtoDAsync_v2:1:400");
    while (cuda->pending())
        cuda->progress();
    gpu.simgpu_fault(nullptr);
    for (const Completion& each : done)
        EXPECT_TRUE(each.done());
    EXPECT_FALSE(done[1].status().ok());
}

TEST_F(CudaFused, BetweenMemoryThatIsNoDeviceMemoryAnyMoreItIsAnError) {
    const CUdeviceptr from = allocate(4096), to = allocate(4096);
    classify(pointer(from), 4096);
    classify(pointer(to), 4096);
    EXPECT_TRUE(copy({pointer(to), pointer(from), 64, 0, Engine::fused}).ok());
    ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    const Status copied = copy({pointer(to), pointer(from), 64, 0, Engine::fused});
    EXPECT_EQ(copied.error_class(), MPI_ERR_OTHER);
    EXPECT_NE(copied.text().find("context of GPU 0 was destroyed"), std::string_view::npos)
        << copied.text();
}

TEST_F(CudaFused, AnEndIsSeenWithoutACallOfTheDriver) {
    const CUdeviceptr from = allocate(4096), to = allocate(4096);
    classify(pointer(from), 4096);
    classify(pointer(to), 4096);
    for (const Engine engine : {Engine::fused, Engine::d2d}) {
        for (int round = 0; round < 2; ++round) {  // the first one sets up
            Completion done(executor);
            cuda->copy({pointer(to), pointer(from), 4096, 0, engine, Notice::flag}, done);
            gpu.cuCtxSynchronize();
            const std::uint64_t before = cuda->calls().total();
            cuda->progress();
            EXPECT_TRUE(done.done());
            if (round == 1) {
                EXPECT_EQ(cuda->calls().total(), before);
            }
        }
    }
    gpu.cuMemFree_v2(from);
    gpu.cuMemFree_v2(to);
}

}  // namespace
}  // namespace gantry::device

// SPDX-License-Identifier: BSD-3-Clause
//
// A persistent kernel: right bytes at every size, alignment and moment, no call of the
// driver for what it takes between devices, and an end that nobody has to ask for.
#include "cuda_resident_fixture.hpp"

#include <deque>
#include <random>

namespace gantry::device {
namespace {

using testing_support::pointer;

TEST_F(CudaResident, WhatItTakesCostsNoCallOfTheDriver) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    EXPECT_GE(cuda->calls().launches, 1u);
    clear();
    std::vector<std::uint8_t> expected(kBytes, 0);
    const std::vector<std::uint8_t> data = pattern(kBytes);
    std::mt19937 dice(7);
    // But for questions about what does not show for a millisecond, on a machine that is busy.
    const auto calls = [this] {
        const cuda::Calls& made = cuda->calls();
        return made.total() - made.completions - made.contexts;
    };
    const auto taken_by_kernels = [this] { return cuda->resident().copies; };
    for (int i = 0; i < 400; ++i) {
        const Bytes bytes = 1 + dice() % (i % 8 == 0 ? 64 * kKiB : 5000);
        const Bytes at = dice() % (kBytes - bytes);
        do_until_taken([&] {
            const std::uint64_t before = calls(), taken = taken_by_kernels();
            ASSERT_TRUE(copy(order(at, bytes)).ok());
            if (taken_by_kernels() > taken) {
                EXPECT_EQ(calls(), before);
            }
        });
        std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(at), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    EXPECT_EQ(read(to, kBytes), expected);
}

TEST_F(CudaResident, ManyAtOnceGoRoundTheRingAndWhatDoesNotFitGoesAnotherWay) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    for (int round = 0; round < 3; ++round) {
        clear();
        std::deque<Completion> done;
        constexpr Bytes kPiece = 512;
        for (Bytes at = 0; at < kBytes; at += kPiece) {  // 2048, and the ring holds 1024
            done.emplace_back(executor);
            cuda->copy(order(at, kPiece), done.back());
        }
        for (const Completion& each : done) {
            finish(each);
            EXPECT_TRUE(each.status().ok()) << each.status().text();
        }
        EXPECT_EQ(read(to, kBytes), pattern(kBytes)) << round;
    }
}

// Its multiprocessor must not remember what the buffer held when it was copied last.
TEST_F(CudaResident, SeesWhatTheProgramWroteInBetween) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    CUstream stream = nullptr;
    ASSERT_EQ(gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (int value = 1; value < 250; ++value) {
        constexpr Bytes kPart = 48 * kKiB;
        ASSERT_EQ(gpu.cuMemsetD8Async(from, static_cast<unsigned char>(value), kPart, stream),
                  CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuStreamSynchronize(stream), CUDA_SUCCESS);
        copy_until_taken(order(0, kPart));
        std::vector<std::uint8_t> seen(kPart);
        ASSERT_EQ(gpu.cuMemcpyDtoHAsync_v2(seen.data(), to, kPart, stream), CUDA_SUCCESS);
        ASSERT_EQ(gpu.cuStreamSynchronize(stream), CUDA_SUCCESS);
        ASSERT_EQ(seen, std::vector<std::uint8_t>(kPart, static_cast<std::uint8_t>(value)));
    }
    gpu.cuStreamDestroy_v2(stream);
}

TEST_F(CudaResident, EndsWhenNothingComes) {
    start(20 * kMillisecond);
    for (int life = 0; life < 3; ++life) {
        ASSERT_TRUE(copy_until_one_stays());
        ASSERT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);  // waits for it
        const std::uint64_t before = cuda->calls().copies;
        EXPECT_TRUE(copy(order(100, 1000)).ok());
        EXPECT_EQ(cuda->calls().copies - before, 1u);
    }
    EXPECT_EQ(read(to + 100, 1000), read(from + 100, 1000));
}

TEST_F(CudaResident, ADeviceThatGoesWaitsForIt) {
    start(20 * kMillisecond);
    ASSERT_TRUE(copy_until_one_stays());
    Completion done(executor);
    cuda->copy(order(0, 64 * kKiB), done);
    cuda->shut_down();
    EXPECT_TRUE(done.done() && done.status().ok());
    EXPECT_EQ(read(to, 64 * kKiB), read(from, 64 * kKiB));
}

TEST_F(CudaResident, AfterAResetTheNextContextHasItsOwn) {
    start(20 * kMillisecond);
    for (int life = 0; life < 3; ++life) {
        ASSERT_TRUE(copy_until_one_stays()) << life;
        reset_context();
        from = allocate(kBytes + kBehind);
        to = allocate(kBytes + kBehind);
        write(from, pattern(kBytes, static_cast<unsigned>(life)));
        classify(pointer(from), kBytes);
        classify(pointer(to), kBytes);
        std::uint8_t host[64] = {};
        EXPECT_TRUE(copy({host, pointer(from), 64, 0, Engine::d2h}).ok());
    }
}

struct Somebody : Neighbours {
    bool use(const Uuid&) const override { return there; }
    bool there = true;
};

// Both need some hundred copies for one.
constexpr Nanoseconds kShort = 2 * kMillisecond;
constexpr int kManyCopies = 3000;

TEST_F(CudaResident, NoneStaysOnAGpuThatTakesTurns) {
    start(kShort);
    if (cuda->gpu_facts(0).mps) GTEST_SKIP() << "this one takes none";
    Somebody neighbours;
    cuda->meet(&neighbours);
    EXPECT_FALSE(one_stays_after(kManyCopies));
    EXPECT_EQ(cuda->calls().launches, 0u);
    neighbours.there = false;
    EXPECT_TRUE(copy_until_one_stays());
    cuda->meet(nullptr);
}

TEST_F(CudaResident, NoneStaysWhereTheProgramWantsNone) {
    start(0);
    EXPECT_FALSE(one_stays_after(kManyCopies));
    EXPECT_EQ(cuda->calls().launches, 0u);
    config.kernels = false;
    start(kShort);
    EXPECT_FALSE(one_stays_after(kManyCopies));
    EXPECT_EQ(cuda->calls().launches, 0u);
    config.kernels = true;
    start(kShort);
    EXPECT_TRUE(copy_until_one_stays());
}

}  // namespace
}  // namespace gantry::device

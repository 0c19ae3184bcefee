// SPDX-License-Identifier: BSD-3-Clause
//
// What a persistent kernel takes as several items with one end: copies that are made together, and
// reductions of short vectors. It costs no launch, and what comes too late happens once, another way.
#include "cuda_resident_fixture.hpp"

#include <cstring>
#include <deque>
#include <random>

namespace gantry::device {
namespace {

using testing_support::pointer;

std::vector<CopyPart> draw(std::mt19937& dice, CUdeviceptr to, CUdeviceptr from, Bytes room) {
    std::vector<CopyPart> parts(1 + dice() % 7);
    const Bytes share = room / parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Bytes at = i * share + dice() % 100, bytes = 1 + dice() % 6000;
        parts[i] = {pointer(to + at), pointer(from + at), bytes};
    }
    return parts;
}

void make(const std::vector<CopyPart>& parts, CUdeviceptr to, const std::vector<std::uint8_t>& data,
          std::vector<std::uint8_t>& expected) {
    for (const CopyPart& part : parts) {
        const auto at =
            static_cast<std::ptrdiff_t>(reinterpret_cast<CUdeviceptr>(part.destination) - to);
        std::copy_n(data.begin() + at, part.bytes, expected.begin() + at);
    }
}

Copy together(const std::vector<CopyPart>& parts) {
    Copy copy;
    copy.engine = Engine::fused;
    copy.parts = parts;
    for (const CopyPart& part : parts)
        copy.bytes += part.bytes;
    return copy;
}

TEST_F(CudaResident, CopiesThatAreMadeTogetherCostNoLaunch) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    clear();
    const std::vector<std::uint8_t> data = pattern(kBytes);
    std::vector<std::uint8_t> expected(kBytes, 0);
    std::mt19937 dice(3);
    for (int i = 0; i < 100; ++i) {
        const std::vector<CopyPart> parts = draw(dice, to, from, kBytes - 8000);
        copy_until_taken(together(parts));
        make(parts, to, data, expected);
    }
    EXPECT_EQ(read(to, kBytes), expected);
}

// Those that come first go by launches, until it pays.
TEST_F(CudaResident, OneStaysForCopiesThatAreMadeTogether) {
    start(kLong);
    std::mt19937 dice(4);
    std::uint64_t launches = 0;
    do {
        launches = cuda->calls().launches;
        ASSERT_TRUE(copy(together(draw(dice, to, from, kBytes - 8000))).ok());
    } while (cuda->calls().launches != launches);
    EXPECT_GE(cuda->resident().launches, 1u);
}

// Many vectors become one, in place: whoever reduced twice, or not at all, would be seen.
struct Counter {
    cuda::Order order;
    Reduce reduction;
    const void* sources[2];

    Counter(CUdeviceptr ones, CUdeviceptr counts, std::uint64_t count)
        : sources{pointer(ones), pointer(counts)} {
        reduction.operation = layout::Operation::sum;
        reduction.element = layout::Element::int64;
        reduction.sources = sources;
        reduction.destination = pointer(counts);
        reduction.count = count;
        order.queue = cuda::Queue::d2d;
        order.copy = {reduction.destination, sources[0], 8 * count, 0, Engine::d2d};
        order.reduction = &reduction;
    }
};

TEST_F(CudaResident, WhatComesTooLateIsReducedOnceAndCopied) {
    start(kLong);  // by streams of its own
    cuda::CopySettings settings;
    settings.idle_timeout = 100 * kMicrosecond;
    settings.resident_margin = -kSecond;  // kernels that have ended are trusted
    OwnStreams own(primary, cuda->gpu_facts(0), settings);
    ASSERT_TRUE(own.ready);
    cuda::Streams& streams = own.streams;
    constexpr std::uint64_t kCount = 600;
    constexpr Bytes kCopied = kBytes / 2, kOnes = kBytes / 2, kCounts = kOnes + 8 * kCount;
    std::vector<std::uint64_t> ones(kCount, 1), counts(kCount, 0);
    std::vector<std::uint8_t> bytes(8 * kCount);
    std::memcpy(bytes.data(), ones.data(), bytes.size());
    clear();
    write(to + kOnes, bytes);
    const Counter counter(to + kOnes, to + kCounts, kCount);
    const std::vector<std::uint8_t> data = pattern(kBytes);
    std::vector<std::uint8_t> expected(kCopied, 0);
    std::mt19937 dice(5);
    std::uint64_t sum = 0;
    // Only ends a test that hangs.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    const auto late = [&streams] { return streams.resident().counts().untaken; };
    const auto both = [&] { return late() >= 10 && streams.resident().counts().copies >= 10; };
    for (int i = 0; i < 300 || (!both() && std::chrono::steady_clock::now() < limit); ++i) {
        const std::vector<CopyPart> parts = draw(dice, to, from, kCopied - 8000);
        make(parts, to, data, expected);
        Completion reduced(executor), copied(executor);
        ASSERT_TRUE(streams.start(counter.order, reduced));
        ++sum;
        if (!streams.copy_parts(together(parts), copied)) FAIL() << "copies together";
        while ((!reduced.done() || !copied.done()) && std::chrono::steady_clock::now() < limit)
            streams.progress();
        ASSERT_TRUE(reduced.done() && reduced.status().ok());
        ASSERT_TRUE(copied.done() && copied.status().ok()) << copied.status().text();
        if (i % 16 != 0) continue;
        const auto until =
            std::chrono::steady_clock::now() + std::chrono::microseconds(90 + dice() % 30);
        while (std::chrono::steady_clock::now() < until) {
        }
    }
    EXPECT_GE(late(), 10u);
    EXPECT_GE(streams.resident().counts().copies, 10u);
    std::memcpy(bytes.data(), std::vector<std::uint64_t>(kCount, sum).data(), bytes.size());
    EXPECT_EQ(read(to + kCounts, bytes.size()), bytes);
    EXPECT_EQ(read(to, kCopied), expected);
    streams.close();
}

// A reduction is no copy: of a context that is gone, it is not made at all.
TEST_F(CudaResident, OfAContextThatIsGoneNoReductionBecomesACopy) {
    start(kLong);  // by streams of its own
    cuda::CopySettings settings;
    settings.idle_timeout = kLong;
    OwnStreams own(primary, cuda->gpu_facts(0), settings);
    ASSERT_TRUE(own.ready);
    cuda::Streams& streams = own.streams;
    const Counter counter(from, to, 100);
    std::deque<Completion> started;
    own.start_until_taken(counter.order, executor, started);
    streams.abandon(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_TRUE(started.back().done());
    EXPECT_FALSE(started.back().status().ok());
    EXPECT_TRUE(streams.take_unstarted().empty());
    ASSERT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace gantry::device

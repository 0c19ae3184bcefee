// SPDX-License-Identifier: BSD-3-Clause
//
// A persistent kernel, and host memory: page-locked or not, in the order of its direction,
// and what becomes of copies that no kernel took.
#include "cuda_resident_fixture.hpp"
#include "device/cuda/streams.hpp"

#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <random>

namespace gantry::device {
namespace {

using testing_support::GpuProgram;
using testing_support::pointer;

// Copies of every kind, each with a destination of its own kind and what it must hold.
struct CudaResidentHost : CudaResident {
    std::byte* host = nullptr;

    void SetUp() override {
        CudaResident::SetUp();
        void* memory = nullptr;
        ASSERT_EQ(gpu.cuMemAllocHost_v2(&memory, 2 * kBytes), CUDA_SUCCESS);
        host = static_cast<std::byte*>(memory);
    }
    void TearDown() override {
        if (host != nullptr) gpu.cuMemFreeHost(host);
        CudaResident::TearDown();
    }
    void start(Nanoseconds idle_timeout) {
        CudaResident::start(idle_timeout);
        clear();
        classify(host, 2 * kBytes);
        classify(pointer(from), kBytes);
        classify(pointer(to), kBytes);
        const std::vector<std::uint8_t> data = pattern(kBytes, 9);
        std::memcpy(host, data.data(), kBytes);
        std::memset(host + kBytes, 0, kBytes);
    }
    Copy out(Bytes at, Bytes bytes, Engine engine = Engine::d2h) {
        return {host + kBytes + at, pointer(from + at), bytes, 0, engine};
    }
    Copy in(Bytes at, Bytes bytes, Engine engine = Engine::h2d) {
        return {pointer(to + at), host + at, bytes, 0, engine};
    }
    std::vector<std::uint8_t> came_out(Bytes at, Bytes bytes) const {
        const auto* first = reinterpret_cast<const std::uint8_t*>(host + kBytes + at);
        return {first, first + bytes};
    }
};

TEST_F(CudaResidentHost, TakesCopiesFromAndToPageLockedMemory) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    clear();
    const std::vector<std::uint8_t> device = pattern(kBytes), given = pattern(kBytes, 9);
    std::vector<std::uint8_t> expected_out(kBytes, 0), expected_in(kBytes, 0);
    std::mt19937 dice(3);
    const Engine outs[] = {Engine::d2h, Engine::automatic},
                 ins[] = {Engine::h2d, Engine::automatic, Engine::h2d_2d};
    for (unsigned i = 0; i < 600; ++i) {
        Bytes bytes = 1 + dice() % (i % 8 == 0 ? kMostOfResident : i % 2 == 0 ? 5000 : 40);
        Bytes at = dice() % (kBytes - bytes);
        if (i % 3 == 0) {  // by 16 bytes at a time
            bytes = round_up(bytes, Bytes{16});
            at = at / 16 * 16;
        }
        if (i % 4 < 2) {
            copy_until_taken(out(at, bytes, outs[i % 2]));
            std::copy_n(device.begin() + static_cast<std::ptrdiff_t>(at), bytes,
                        expected_out.begin() + static_cast<std::ptrdiff_t>(at));
        } else {
            copy_until_taken(in(at, bytes, ins[i % 3]));
            std::copy_n(given.begin() + static_cast<std::ptrdiff_t>(at), bytes,
                        expected_in.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }
    EXPECT_EQ(came_out(0, kBytes), expected_out);
    EXPECT_EQ(read(to, kBytes), expected_in);
    // Too long for it.
    const std::uint64_t before = cuda->calls().copies;
    EXPECT_TRUE(copy(out(0, kMostOfResident + 1)).ok());
    EXPECT_EQ(cuda->calls().copies, before + 1);
}

TEST_F(CudaResidentHost, CopiesOfOneDirectionGetOneToo) {
    for (const bool outwards : {true, false}) {
        start(5 * kMillisecond);
        bool taken = false;  // only the time limit of the test ends this
        while (!taken) {
            const std::uint64_t before = cuda->calls().copies;
            ASSERT_TRUE(copy(outwards ? out(0, 256) : in(0, 256)).ok());
            taken = cuda->calls().copies == before;
        }
    }
}

// Where copy engines are as quick, only what comes close behind others is worth it.
TEST_F(CudaResidentHost, AloneTheyGoByCopyEngineWhereThatIsAsQuick) {
    machine = "h100";
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    clear();
    for (const bool outwards : {true, false}) {
        const auto order = [&](Bytes at) { return outwards ? out(at, 256) : in(at, 256); };
        bool taken = false;  // some of them
        while (!taken) {
            const std::uint64_t before = cuda->calls().copies;
            ASSERT_TRUE(copy(order(0)).ok());
            EXPECT_EQ(cuda->calls().copies, before + 1);
            std::deque<Completion> done;
            for (Bytes i = 1; i < 8; ++i) {
                done.emplace_back(executor);
                cuda->copy(order(i * 256), done.back());
            }
            finish(done.back());
            taken = cuda->calls().copies < before + 8;
            if (!taken) {
                ASSERT_TRUE(copy_until_one_stays());
            }
        }
    }
    EXPECT_EQ(came_out(0, 8 * 256), read(from, 8 * 256));
    std::vector<std::uint8_t> given = pattern(kBytes, 9);
    given.resize(8 * 256);
    EXPECT_EQ(read(to, 8 * 256), given);
}

TEST_F(CudaResidentHost, AFewBytesGoAnywhere) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    for (Bytes bytes = 1; bytes <= 32 * kKiB; bytes += bytes < 20 ? 1 : bytes / 3) {
        std::vector<std::uint8_t> into(bytes + 1, 0xaa), expected = read(from + 5, bytes);
        expected.push_back(0xaa);
        copy_until_taken({into.data(), pointer(from + 5), bytes, 0, Engine::d2h});
        EXPECT_EQ(into, expected) << bytes;
    }
}

// They travel in items and slots: the source need not be page-locked.
TEST_F(CudaResidentHost, AFewBytesComeFromAnywhere) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    clear();
    for (Bytes bytes = 1; bytes <= 32 * kKiB; bytes += bytes < 20 ? 1 : bytes / 3) {
        const std::vector<std::uint8_t> source = pattern(bytes, static_cast<unsigned>(bytes));
        for (const Bytes at : {Bytes{0}, Bytes{64 * kKiB + 3}}) {
            copy_until_taken({pointer(to + at), source.data(), bytes, 0, Engine::h2d});
            EXPECT_EQ(read(to + at, bytes), source) << bytes;
            EXPECT_EQ(read(to + at + bytes, 1), std::vector<std::uint8_t>(1, 0)) << bytes;
        }
    }
}

// What was page-locked when it was looked at last, and is not any more: a kernel that touched it
// would end with the context.
TEST_F(CudaResidentHost, LeavesMemoryAloneThatIsNotPageLockedAnyMore) {
    start(kLong);
    constexpr Bytes kMost = 40 * kKiB;
    void* const memory =
        mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ASSERT_EQ(gpu.cuMemHostRegister_v2(memory, kMost, 0), CUDA_SUCCESS);
    EXPECT_EQ(classify(memory, kMost).kind, MemoryKind::pinned);
    for (const bool locked : {true, false}) {
        if (!locked) {
            ASSERT_EQ(gpu.cuMemHostUnregister(memory), CUDA_SUCCESS);
        }
        ASSERT_TRUE(copy_until_one_stays());  // an end of a registration waits for all kernels
        for (const Bytes bytes : {4 * kKiB, kMost}) {
            std::memset(memory, 0, kMost);
            const Copy out{memory, pointer(from), bytes, 0, Engine::d2h};
            if (locked || bytes < kMost) {  // a small one goes through slots
                copy_until_taken(out);
            } else {
                const std::uint64_t before = cuda->calls().copies;
                EXPECT_TRUE(copy(out).ok());
                EXPECT_EQ(cuda->calls().copies - before, 1u);
            }
            EXPECT_EQ(std::memcmp(memory, pattern(bytes).data(), bytes), 0) << locked << bytes;
        }
    }
    munmap(memory, kMost);
}

// One after the other in their direction, whoever makes them.
TEST_F(CudaResidentHost, CopiesOfADirectionEndInOrder) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    std::mt19937 dice(17);
    for (int round = 0; round < 200; ++round) {
        std::deque<Completion> done;
        const bool outwards = round % 2 == 0;
        for (Bytes i = 0; i < 6; ++i) {
            done.emplace_back(executor);
            const Bytes bytes = dice() % 2 == 0 ? 64 : 100 * kKiB;
            const Bytes at = i * 128 * kKiB;
            cuda->copy(outwards ? out(at, bytes) : in(at, bytes), done.back());
            if (dice() % 2 == 0) cuda->progress();
        }
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!done.back().done() && std::chrono::steady_clock::now() < limit) {
            cuda->progress();
            bool all = true;  // so far
            for (const Completion& each : done) {
                ASSERT_TRUE(all || !each.done()) << round;
                all = each.done();
            }
        }
        for (const Completion& each : done)
            ASSERT_TRUE(each.done() && each.status().ok());
    }
    EXPECT_EQ(came_out(0, 64), pattern(64));
}

// Also while copies are in flight that went before it stayed.
TEST_F(CudaResidentHost, AWindowIsTakenWhole) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    Completion large(executor);
    cuda->copy(out(0, 256 * kKiB), large);
    do_until_taken([&] {
        std::deque<Completion> done;
        for (Bytes i = 0; i < 64; ++i) {
            done.emplace_back(executor);
            cuda->copy(out(256 * kKiB + i * 2000, 1999), done.back());
        }
        finish(done.back());
        EXPECT_TRUE(large.done());
    });
    EXPECT_EQ(came_out(0, 256 * kKiB), pattern(256 * kKiB));
    for (Bytes i = 0; i < 64; ++i)
        EXPECT_EQ(came_out(256 * kKiB + i * 2000, 1999), read(from + 256 * kKiB + i * 2000, 1999));
}

// The host trusts kernels that have ended: all that it gives them comes too late, and goes another
// way. Some end in between, with a part of a copy taken.
TEST_F(CudaResidentHost, WhatComesTooLateGoesAnotherWay) {
    start(kLong);  // by streams of its own
    cuda::CopySettings settings;
    settings.idle_timeout = 100 * kMicrosecond;
    settings.resident_margin = -kSecond;
    OwnStreams own(primary, cuda->gpu_facts(0), settings);
    ASSERT_TRUE(own.ready);
    cuda::Streams& streams = own.streams;
    const std::vector<std::uint8_t> data = pattern(kBytes), given = pattern(kBytes, 9);
    std::vector<std::uint8_t> expected(kBytes, 0), expected_out(kBytes, 0);
    std::mt19937 dice(11);
    // Only ends a test that hangs.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    const auto late = [&streams] { return streams.resident().counts().untaken; };
    // On a busy machine nearly all of them come too late.
    const auto both = [&] { return late() >= 10 && streams.resident().counts().copies >= 10; };
    for (int i = 0; i < 300 || (!both() && std::chrono::steady_clock::now() < limit); ++i) {
        std::deque<Completion> done;
        std::vector<const Completion*> outwards;
        for (int each = 0; each < 1 + i % 6; ++each) {
            const Bytes bytes = 1 + dice() % (dice() % 2 == 0 ? 60000 : 3000);
            const auto at = static_cast<std::ptrdiff_t>(dice() % (kBytes - bytes));
            const auto from_at = static_cast<Bytes>(at);
            cuda::Order next;
            switch (dice() % 3) {
                case 0:
                    next.copy = order(from_at, bytes);
                    std::copy_n(data.begin() + at, bytes, expected.begin() + at);
                    break;
                case 1:
                    next = {out(from_at, bytes), cuda::Queue::d2h};
                    next.resident = {Ends::to_host, dice() % 2 == 0};
                    std::copy_n(data.begin() + at, bytes, expected_out.begin() + at);
                    break;
                default:
                    next = {in(from_at, bytes), cuda::Queue::h2d};
                    next.resident = {Ends::from_host, dice() % 2 == 0};
                    std::copy_n(given.begin() + at, bytes, expected.begin() + at);
            }
            done.emplace_back(executor);
            if (next.queue == cuda::Queue::d2h) outwards.push_back(&done.back());
            ASSERT_TRUE(streams.start(next, done.back()));
            // The two ways into `to` have no order between them.
            while (!done.back().done() && std::chrono::steady_clock::now() < limit &&
                   (next.copy.engine != Engine::d2h || each % 3 == 2))
                streams.progress();
        }
        for (const Completion& each : done) {
            while (!each.done() && std::chrono::steady_clock::now() < limit) {
                streams.progress();
                bool all = true;  // so far: whoever makes them, they end in order
                for (const Completion* out : outwards) {
                    ASSERT_TRUE(all || !out->done()) << i;
                    all = out->done();
                }
            }
            ASSERT_TRUE(each.done() && each.status().ok());
        }
        if (i % 16 != 0) continue;
        const auto until =
            std::chrono::steady_clock::now() + std::chrono::microseconds(90 + dice() % 30);
        while (std::chrono::steady_clock::now() < until) {
        }
    }
    EXPECT_GE(late(), 10u);
    EXPECT_GE(streams.resident().counts().copies, 10u);
    EXPECT_EQ(read(to, kBytes), expected);
    EXPECT_EQ(came_out(0, kBytes), expected_out);
    streams.close();
}

// Whether the kernel had copied it or not, nobody had been told: it may be copied again.
TEST_F(CudaResidentHost, OfAContextThatIsGoneWhatItHadGoesAnotherWay) {
    start(kLong);  // by streams of its own
    cuda::CopySettings settings;
    settings.idle_timeout = kLong;
    OwnStreams own(primary, cuda->gpu_facts(0), settings);
    ASSERT_TRUE(own.ready);
    cuda::Streams& streams = own.streams;
    cuda::Order single{out(0, 100), cuda::Queue::d2h};
    single.resident = {Ends::to_host, true};
    cuda::Order between;
    between.copy = order(0, 100);
    const auto taken = [&streams] { return streams.resident().counts().copies; };
    // Until a kernel has taken both; only the time limit of the test ends this.
    std::deque<Completion> started;
    for (bool both = false; !both;) {
        for (const Completion& each : started)
            while (!each.done())
                streams.progress();
        started.clear();
        const std::uint64_t before = taken();
        for (const cuda::Order& each : {single, between}) {
            started.emplace_back(executor);
            ASSERT_TRUE(streams.start(each, started.back()));
        }
        both = taken() == before + 2;
    }
    const Completion &done = started.front(), &fused = started.back();
    ASSERT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);  // so that it writes nothing later
    streams.abandon(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    const std::vector<FusedQueue::Item> left = streams.take_unstarted();
    ASSERT_EQ(left.size(), 2u);
    EXPECT_EQ(left[0].done, &fused);
    EXPECT_EQ(left[1].done, &done);
    EXPECT_FALSE(done.done() || fused.done());
    EXPECT_EQ(left[1].copy.engine, Engine::d2h);
    EXPECT_FALSE(streams.pending());
}

}  // namespace
}  // namespace gantry::device

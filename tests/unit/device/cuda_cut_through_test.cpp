// SPDX-License-Identifier: BSD-3-Clause
//
// Copies that flow through slots by a persistent kernel: what leaves the device is told piece by
// piece, each when it lies there; and what becomes of one that no kernel took.
#include "cuda_resident_fixture.hpp"
#include "device/cuda/streams.hpp"
#include "sanitized.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace gantry::device {
namespace {

using testing_support::GpuProgram;
using testing_support::pointer;

constexpr Bytes kPiece = 16 * kKiB;
constexpr unsigned kInRow = 4;
constexpr Bytes kRow = 64;

struct CudaCutThrough : CudaResident {
    static constexpr Bytes kWords = kBytes / kPiece / kInRow * kRow;
    std::byte* slots = nullptr;
    std::uint32_t* words = nullptr;      // behind them
    std::uint32_t number = 0xc000'0000;  // all bits of it arrive

    void SetUp() override {
        CudaResident::SetUp();
        void* const memory = mmap(nullptr, kBytes + kWords, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        slots = static_cast<std::byte*>(memory);
        words = reinterpret_cast<std::uint32_t*>(slots + kBytes);
    }
    void TearDown() override {
        if (cuda != nullptr && slots != nullptr) cuda->unpin(slots);
        CudaResident::TearDown();
        munmap(slots, kBytes + kWords);
    }
    // With a persistent kernel, and what the device must have seen of such copies.
    void start() {
        CudaResident::start(kLong);
        ASSERT_TRUE(cuda->pin(slots, kBytes + kWords).ok());
        classify(pointer(from), kBytes);
        classify(pointer(to), kBytes);
        ASSERT_TRUE(copy_until_one_stays());  // and the slots are page-locked
        ASSERT_TRUE(copy(out(kBytes)).ok());
        ASSERT_TRUE(copy(in(0, kBytes)).ok());
        clear();
    }
    Copy out(Bytes bytes, Bytes at = 0) {
        Copy copy{slots, pointer(from + at), bytes, 0, Engine::d2h};
        copy.number = ++number;
        copy.pieces = {.size = kPiece,
                       .message = at == 0 ? bytes : 0,
                       .words = words,
                       .in_row = kInRow,
                       .row = kRow};
        return copy;
    }
    Copy in(Bytes at, Bytes bytes) {
        Copy copy{pointer(to + at), slots + at, bytes, 0, Engine::h2d};
        copy.pieces = {.size = kPiece, .cut_through = true, .message = at == 0 ? bytes : 0};
        return copy;
    }
    bool came(const Copy& copy, Bytes piece) const {
        return __atomic_load_n(copy.pieces.word(piece), __ATOMIC_ACQUIRE) == copy.number;
    }
};

TEST_F(CudaCutThrough, EachPieceIsToldWhenItLiesThere) {
    start();
    const cuda::Calls before = cuda->calls();
    for (const Bytes bytes : {kBytes, Bytes{100'001}, kPiece + 1, kPiece, 37 * kPiece - 5}) {
        for (const Bytes at : {Bytes{0}, Bytes{16}, Bytes{5008}}) {
            if (at + bytes > kBytes) continue;
            SCOPED_TRACE(testing::Message() << bytes << " from " << at);
            const std::vector<std::uint8_t> expected = pattern(kBytes);
            std::memset(slots, 0, kBytes);
            const Copy flowing = out(bytes, at);
            Completion done(executor);
            ASSERT_TRUE(cuda->cut_through(flowing, &done));
            const Bytes pieces = divide_up(bytes, kPiece);
            std::vector<bool> seen(pieces, false);
            Bytes missing = pieces;
            const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            while (missing > 0 && std::chrono::steady_clock::now() < limit)
                for (Bytes piece = 0; piece < pieces; ++piece) {
                    if (seen[piece] || !came(flowing, piece)) continue;
                    seen[piece] = true;
                    --missing;
                    const Bytes begin = piece * kPiece, size = std::min(kPiece, bytes - begin);
                    EXPECT_EQ(std::memcmp(slots + begin, expected.data() + at + begin, size), 0)
                        << piece;
                }
            EXPECT_EQ(missing, 0u);
            finish(done);
            EXPECT_TRUE(done.status().ok());
            // Nothing behind it.
            if (bytes < kBytes) {
                EXPECT_EQ(slots[bytes], std::byte{0});
            }
        }
    }
    EXPECT_EQ(cuda->calls().copies, before.copies);
    EXPECT_EQ(cuda->calls().launches, before.launches);
}

TEST_F(CudaCutThrough, WhatHasComeGoesInPartByPart) {
    start();
    const std::vector<std::uint8_t> data = pattern(kBytes, 5);
    std::mt19937 dice(7);
    const cuda::Calls before = cuda->calls();
    for (const Bytes bytes : {kBytes, kPiece + 16, Bytes{3}, Bytes{300'007}}) {
        std::memcpy(slots, data.data(), kBytes);
        clear();
        std::deque<Completion> done;
        for (Bytes at = 0; at < bytes;) {
            const Bytes part = std::min(bytes - at, kPiece * (1 + dice() % 9));
            done.emplace_back(executor);
            ASSERT_TRUE(cuda->cut_through(in(at, part), &done.back()));
            at += part;
        }
        finish(done.back());
        std::vector<std::uint8_t> expected(data.begin(),
                                           data.begin() + static_cast<std::ptrdiff_t>(bytes));
        EXPECT_EQ(read(to, bytes), expected) << bytes;
        if (bytes < kBytes) {
            EXPECT_EQ(read(to + bytes, 1), std::vector<std::uint8_t>(1, 0));
        }
    }
    EXPECT_EQ(cuda->calls().copies, before.copies);
}

// Also from memory that was never copied: most buffers of some programs are new.
TEST_F(CudaCutThrough, NewMemoryFlowsToo) {
    start();
    const CUdeviceptr fresh = allocate(kBytes);
    write(fresh, pattern(kBytes, 3));
    classify(pointer(fresh), kBytes);
    ASSERT_TRUE(copy_until_one_stays());  // writing waited for the one before
    Copy flowing = out(kBytes);
    flowing.source = pointer(fresh);
    Completion done(executor);
    ASSERT_TRUE(cuda->cut_through(flowing, &done));
    finish(done);
    EXPECT_EQ(std::memcmp(slots, pattern(kBytes, 3).data(), kBytes), 0);
    gpu.cuMemFree_v2(fresh);
}

TEST_F(CudaCutThrough, IsRefusedWhereItCannotBeOrNoneStays) {
    CudaResident::start(kLong);
    ASSERT_TRUE(cuda->pin(slots, kBytes + kWords).ok());
    classify(pointer(from), kBytes);
    Completion done(executor);
    ASSERT_TRUE(copy_until_one_stays());
    EXPECT_FALSE(cuda->would_cut_through(Engine::d2h));  // nobody has asked for one
    ASSERT_TRUE(copy(out(kBytes)).ok());
    // Memory that is not ours, on either side; by single bytes from the host.
    std::vector<std::byte> foreign(kPiece);
    Copy elsewhere = out(kPiece);
    elsewhere.destination = foreign.data();
    EXPECT_FALSE(cuda->cut_through(elsewhere, &done));
    std::uint32_t foreign_words[4] = {};
    Copy unsent_rts = out(kPiece);
    unsent_rts.pieces.words = foreign_words;
    EXPECT_FALSE(cuda->cut_through(unsent_rts, &done));
    ASSERT_TRUE(copy(in(0, kBytes)).ok());
    // At odd addresses it would go by single bytes.
    for (Copy odd : {in(0, kPiece), out(kPiece)}) {
        odd.source = static_cast<const std::byte*>(odd.source) + 1;
        EXPECT_FALSE(cuda->cut_through(odd, &done));
    }
    EXPECT_FALSE(cuda->cut_through({pointer(to), slots, kPiece, 0, Engine::h2d}, &done))
        << "no pieces";
    EXPECT_TRUE(cuda->would_cut_through(Engine::d2h));
    // The same without kernels.
    config.kernels = false;
    CudaResident::start(kLong);
    ASSERT_TRUE(cuda->pin(slots, kBytes + kWords).ok());
    ASSERT_TRUE(copy(out(kBytes)).ok());
    EXPECT_FALSE(cuda->would_cut_through(Engine::d2h));
    EXPECT_FALSE(cuda->cut_through(out(kPiece), &done));
    EXPECT_FALSE(done.done());
}

// Copies of that kind alone, far too large for the small ones' kernel, are enough for one; and for
// the next, when that has ended.
TEST_F(CudaCutThrough, LargeCopiesAreWorthAKernel) {
    for (const bool outwards : {true, false}) {
        CudaResident::start(5 * kMillisecond);
        ASSERT_TRUE(cuda->pin(slots, kBytes + kWords).ok());
        classify(pointer(from), kBytes);
        classify(pointer(to), kBytes);
        const std::uint64_t before = cuda->calls().launches;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (cuda->calls().launches < before + 3 && std::chrono::steady_clock::now() < limit) {
            const Copy next = outwards ? out(kBytes) : in(0, kBytes);
            Completion done(executor);
            if (!cuda->would_cut_through(next.engine) || !cuda->cut_through(next, &done))
                cuda->copy(next, done);
            finish(done);
        }
        EXPECT_GE(cuda->calls().launches, before + 3) << outwards;
        cuda->unpin(slots);
    }
}

// What was put when the kernel had given up is copied whole by a copy engine.
TEST_F(CudaCutThrough, WhatComesTooLateGoesAnotherWay) {
    CudaResident::start(kLong);  // by streams of its own
    ASSERT_TRUE(cuda->pin(slots, kBytes + kWords).ok());
    ASSERT_TRUE(copy(out(kBytes)).ok());  // pinned by now
    cuda::CopySettings settings;
    settings.idle_timeout = 100 * kMicrosecond;
    settings.resident_margin = -kSecond;
    OwnStreams own(primary, cuda->gpu_facts(0), settings);
    ASSERT_TRUE(own.ready);
    cuda::Streams& streams = own.streams;
    const std::vector<std::uint8_t> data = pattern(kBytes);
    const auto late = [&streams] { return streams.resident().counts().untaken; };
    // Only ends a test that hangs.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    constexpr int kLate = repetitions(20), kCutThrough = repetitions(60);
    int cut_through = 0;
    for (int i = 0;
         (late() < kLate || cut_through < kCutThrough) && std::chrono::steady_clock::now() < limit;
         ++i) {
        const bool outwards = i % 2 == 0;
        if (!outwards)
            std::memcpy(slots, data.data(), kBytes);
        else
            std::memset(slots, 0, kBytes);
        cuda::Order order{outwards ? out(kBytes) : in(0, kBytes),
                          outwards ? cuda::Queue::d2h : cuda::Queue::h2d};
        order.may_cut_through = true;
        Completion done(executor);
        if (streams.cut_through(order, done))
            ++cut_through;
        else
            ASSERT_TRUE(streams.start(order, done));
        while (!done.done() && std::chrono::steady_clock::now() < limit)
            streams.progress();
        ASSERT_TRUE(done.done() && done.status().ok()) << done.status().text();
        if (outwards)
            ASSERT_EQ(std::memcmp(slots, data.data(), kBytes), 0) << i;
        else
            ASSERT_EQ(read(to, kBytes), data) << i;
    }
    EXPECT_GE(late(), static_cast<std::uint64_t>(kLate));
    EXPECT_GE(cut_through, kCutThrough);
    const cuda::ResidentCopies::Counts& counts = streams.resident().counts();
    EXPECT_EQ(counts.cuts_through, static_cast<std::uint64_t>(cut_through) - counts.untaken);
    EXPECT_EQ(counts.copies, 0u) << "a message that flows is none";
    streams.close();
}

}  // namespace
}  // namespace gantry::device

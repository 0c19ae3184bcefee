// SPDX-License-Identifier: BSD-3-Clause
//
// Rows of strided memory that a persistent kernel moves: right bytes at every width, none between them, and
// no launch. What comes too late is moved all the same.
#include "cuda_resident_fixture.hpp"

#include <mpi.h>

#include <cstdlib>
#include <deque>
#include <random>

namespace gantry::device {
namespace {

using testing_support::pointer;

using Bytes8 = std::vector<std::uint8_t>;

struct CudaResidentRows : CudaResident {
    std::mt19937 dice{11};

    Bytes upto(Bytes most) { return std::uniform_int_distribution<Bytes>(0, most)(dice); }
    // Sets of rows and of planes of rows, in a strided end and, packed, in another one; which of them is the
    // source is drawn, too.
    std::vector<Rows> draw() {
        std::vector<Rows> all(1 + upto(3));
        const bool unpacks = upto(1) == 1;
        std::ptrdiff_t strided = 0, packed = 0;
        for (Rows& set : all) {
            const Bytes unit = Bytes{1} << upto(4);
            const auto aligned = [unit](std::ptrdiff_t at) {
                return static_cast<std::ptrdiff_t>(round_up(static_cast<Bytes>(at), unit));
            };
            set.width = unit * (1 + upto(20));
            set.count = 1 + upto(40);
            set.planes = 1 + upto(5) * upto(1);
            set.destination_pitch = set.width;
            set.source_pitch = set.width + unit * upto(30);
            set.destination_plane = set.width * set.count;
            set.source_plane = set.source_pitch * set.count + unit * upto(100);
            set.source = strided = aligned(strided);
            set.destination = packed = aligned(packed);
            strided += static_cast<std::ptrdiff_t>(set.source_plane * set.planes);
            packed += static_cast<std::ptrdiff_t>(set.bytes());
            if (!unpacks) continue;
            std::swap(set.destination, set.source);
            std::swap(set.destination_pitch, set.source_pitch);
            std::swap(set.destination_plane, set.source_plane);
        }
        return all;
    }
    Copy order(const std::vector<Rows>& rows) const {
        return order(rows, pointer(to), pointer(from));
    }
    static Copy order(const std::vector<Rows>& rows, void* destination, const void* source) {
        Copy copy{destination, source, 0, 0, Engine::kernel};
        for (const Rows& set : rows)
            copy.bytes += set.bytes();
        copy.rows = rows;
        return copy;
    }
    static void make(const std::vector<Rows>& rows, const Bytes8& source, Bytes8& expected) {
        for (const Rows& set : rows)
            for (Bytes plane = 0; plane < set.planes; ++plane)
                for (Bytes row = 0; row < set.count; ++row)
                    std::copy_n(source.begin() + set.source +
                                    static_cast<std::ptrdiff_t>(plane * set.source_plane +
                                                                row * set.source_pitch),
                                set.width,
                                expected.begin() + set.destination +
                                    static_cast<std::ptrdiff_t>(plane * set.destination_plane +
                                                                row * set.destination_pitch));
    }
};

TEST_F(CudaResidentRows, RowsCostNoLaunch) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    const Bytes8 source = pattern(kBytes);
    for (int i = 0; i < 200; ++i) {
        clear();
        const std::vector<Rows> rows = draw();
        copy_until_taken(order(rows));
        Bytes8 expected(kBytes, 0);
        make(rows, source, expected);
        ASSERT_TRUE(read(to, kBytes) == expected) << "round " << i;
    }
}

// Memory that Gantry page-locked: slots, for one.
TEST_F(CudaResidentRows, RowsToAndFromPageLockedMemoryCostNoLaunch) {
    start(kLong);
    constexpr Bytes kPage = 4096;
    void* const host = std::aligned_alloc(kPage, kBytes);
    ASSERT_NE(host, nullptr);
    ASSERT_TRUE(cuda->pin(host, kBytes).ok());
    ASSERT_TRUE(copy_until_one_stays());
    auto* const bytes = static_cast<std::uint8_t*>(host);
    const Bytes8 source = pattern(kBytes);
    for (int i = 0; i < 200; ++i) {
        const std::vector<Rows> rows = draw();
        if (order(rows).bytes > kMostOfResident) continue;
        Bytes8 expected(kBytes, 0);
        make(rows, source, expected);
        const bool out = i % 2 == 0;
        clear();
        if (out)
            std::fill_n(bytes, kBytes, 0);
        else
            std::copy(source.begin(), source.end(), bytes);
        copy_until_taken(out ? order(rows, host, pointer(from)) : order(rows, pointer(to), host));
        const Bytes8 got = out ? Bytes8(bytes, bytes + kBytes) : read(to, kBytes);
        ASSERT_TRUE(got == expected) << "round " << i;
    }
    cuda->unpin(host);
    std::free(host);
}

// Those that come first go by launches, until it pays.
TEST_F(CudaResidentRows, OneStaysForRows) {
    start(kLong);
    std::uint64_t launches = 0;
    do {
        launches = cuda->calls().launches;
        ASSERT_TRUE(copy(order(draw())).ok());
    } while (cuda->calls().launches != launches);
    EXPECT_GE(cuda->resident().launches, 1u);
}

// A row that keeps one block busy for long, more rows than items take, and a pitch that none has room for.
TEST_F(CudaResidentRows, WhatAskForMoreBlocksGoesByALaunch) {
    start(kLong);
    ASSERT_TRUE(copy_until_one_stays());
    const std::vector<Rows> suits_none[] = {
        {{0, 0, 100'001, 1, 0, 0}},
        {{0, 0, 1, 70'000, 1, 3}},
        {{0, 0, 8, 2, 8, Bytes{1} << 28}},
    };
    for (const std::vector<Rows>& rows : suits_none)
        EXPECT_EQ(cuda::ResidentCopies::items_of_rows(order(rows)), 0u);
    const std::vector<Rows> some = {{0, 0, 8, 100, 8, 24}};
    EXPECT_EQ(cuda::ResidentCopies::items_of_rows(order(some)), 1u);
    clear();
    const std::uint64_t before = cuda->calls().launches;
    ASSERT_TRUE(copy(order(suits_none[1])).ok());
    EXPECT_GT(cuda->calls().launches, before);
    Bytes8 expected(kBytes, 0);
    make(suits_none[1], pattern(kBytes), expected);
    EXPECT_TRUE(read(to, kBytes) == expected);
}

cuda::Order inside(const Copy& copy) {
    cuda::Order order;
    order.copy = copy;
    order.rows_may_stay = true;
    return order;
}

TEST_F(CudaResidentRows, WhatComesTooLateIsMovedAllTheSame) {
    start(kLong);  // by streams of its own
    cuda::CopySettings settings;
    settings.idle_timeout = 100 * kMicrosecond;
    settings.resident_margin = -kSecond;  // kernels that have ended are trusted
    OwnStreams own(primary, cuda->gpu_facts(0), settings);
    ASSERT_TRUE(own.ready);
    cuda::Streams& streams = own.streams;
    const Bytes8 source = pattern(kBytes);
    Bytes8 expected(kBytes, 0);
    clear();
    // Only ends a test that hangs.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    const auto& counts = streams.resident().counts();
    const auto both = [&] { return counts.untaken >= 10 && counts.copies >= 10; };
    for (int i = 0; i < 300 || (!both() && std::chrono::steady_clock::now() < limit); ++i) {
        Completion first(executor), second(executor);
        {
            // They are read before start() returns.
            const std::vector<Rows> rows = draw();
            make(rows, source, expected);
            ASSERT_TRUE(streams.start(inside(order(rows)), first));
        }
        const std::vector<Rows> rows = draw();
        // Rows of both may overlap: the later ones are started when the earlier ones have ended.
        while (!first.done() && std::chrono::steady_clock::now() < limit)
            streams.progress();
        make(rows, source, expected);
        ASSERT_TRUE(streams.start(inside(order(rows)), second));
        while (!second.done() && std::chrono::steady_clock::now() < limit)
            streams.progress();
        ASSERT_TRUE(first.done() && first.status().ok()) << first.status().text();
        ASSERT_TRUE(second.done() && second.status().ok()) << second.status().text();
        if (i % 16 != 0) continue;
        const auto until =
            std::chrono::steady_clock::now() + std::chrono::microseconds(90 + dice() % 30);
        while (std::chrono::steady_clock::now() < until) {
        }
    }
    EXPECT_GE(counts.untaken, 10u);
    EXPECT_GE(counts.copies, 10u);
    EXPECT_TRUE(read(to, kBytes) == expected);
    streams.close();
}

// They are no copy of one run: with a context that is gone they fail.
TEST_F(CudaResidentRows, OfAContextThatIsGoneRowsFail) {
    start(kLong);  // by streams of its own
    cuda::CopySettings settings;
    settings.idle_timeout = kLong;
    OwnStreams own(primary, cuda->gpu_facts(0), settings);
    ASSERT_TRUE(own.ready);
    cuda::Streams& streams = own.streams;
    const std::vector<Rows> rows = draw();
    std::deque<Completion> started;
    own.start_until_taken(inside(order(rows)), executor, started);
    streams.abandon(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_TRUE(started.back().done());
    EXPECT_FALSE(started.back().status().ok());
    EXPECT_TRUE(streams.take_unstarted().empty());
    ASSERT_EQ(gpu.cuCtxSynchronize(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace gantry::device

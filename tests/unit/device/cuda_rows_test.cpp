// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of many rows between device memory and packed host memory, by kernel and by copy engine:
// right bytes at every width and alignment and none between, and exact numbers of launches.
#include "cuda_fixture.hpp"

#include <mpi.h>

#include <deque>
#include <random>

namespace gantry::device {
namespace {

using testing_support::CudaTest;
using testing_support::pointer;

struct CudaRows : CudaTest {
    static constexpr Bytes kBytes = Bytes{1} << 20;
    enum class Way : bool { out, in };

    void SetUp() override {
        CudaTest::SetUp();
        if (IsSkipped()) return;
        memory = allocate(kBytes);
        classify(pointer(memory), kBytes);
        ASSERT_EQ(gpu.cuMemAllocHost_v2(&pinned, kBytes), CUDA_SUCCESS);
    }
    void TearDown() override {
        if (primary != nullptr) {
            gpu.cuMemFreeHost(pinned);
            gpu.cuMemFree_v2(memory);
        }
        CudaTest::TearDown();
    }

    // Sets with room between their rows, in any order in the device's memory; of one width and
    // alignment, or of any.
    std::vector<Rows> sets(int count, unsigned seed, Bytes unit) const {
        std::mt19937 dice(seed);
        const auto upto = [&dice](Bytes most) {
            return std::uniform_int_distribution<Bytes>(0, most)(dice);
        };
        const Bytes share = kBytes / static_cast<Bytes>(count) / 16 * 16;
        std::vector<Bytes> places(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < places.size(); ++i)
            places[i] = i * share;
        std::shuffle(places.begin(), places.end(), dice);
        std::vector<Rows> all;
        Bytes packed = 0;
        for (const Bytes place : places) {
            const Bytes width = unit * (1 + upto(share / 64 / unit));
            const Bytes pitch = width + unit * upto(2 * width / unit);
            const Bytes start = unit == 1 ? upto(7) : 0;
            const Bytes rows = 1 + upto((share - start - width) / std::max<Bytes>(pitch, 1));
            all.push_back({static_cast<std::ptrdiff_t>(place + start),
                           static_cast<std::ptrdiff_t>(packed), width, rows, pitch, width});
            packed += rows * width;
        }
        return all;
    }

    // Offsets count from the first row, which may lie behind others.
    Copy order(Way way, std::vector<Rows>& rows, void* host, Engine engine) const {
        Copy copy;
        const std::ptrdiff_t first = rows.front().destination;
        for (Rows& each : rows) {
            copy.bytes += each.bytes();
            each.destination -= first;
        }
        copy.destination = pointer(memory + static_cast<CUdeviceptr>(first));
        copy.source = host;
        if (way == Way::out) {
            for (Rows& each : rows) {
                std::swap(each.destination, each.source);
                std::swap(each.destination_pitch, each.source_pitch);
                std::swap(each.destination_plane, each.source_plane);
            }
            copy.source = copy.destination;
            copy.destination = host;
        }
        copy.engine = engine;
        copy.rows = rows;
        return copy;
    }

    void check(Way way, std::vector<Rows> rows, void* host, Engine engine, unsigned seed) {
        const std::vector<std::uint8_t> in_device = pattern(kBytes, seed);
        const std::vector<std::uint8_t> in_host = pattern(kBytes, seed + 100);
        write(memory, in_device);
        std::memcpy(host, in_host.data(), kBytes);
        std::vector<std::uint8_t> device_after = in_device, host_after = in_host;
        for (const Rows& set : rows)
            for (Bytes i = 0; i < set.count * set.planes; ++i) {
                const Bytes plane = i / set.count, row = i % set.count;
                const auto at = static_cast<Bytes>(set.destination) +
                                plane * set.destination_plane + row * set.destination_pitch;
                const auto packed = static_cast<Bytes>(set.source) + plane * set.source_plane +
                                    row * set.source_pitch;
                if (way == Way::out)
                    std::memcpy(&host_after[packed], &in_device[at], set.width);
                else
                    std::memcpy(&device_after[at], &in_host[packed], set.width);
            }
        const Status status = copy(order(way, rows, host, engine));
        EXPECT_TRUE(status.ok()) << status.text();
        EXPECT_TRUE(read(memory, kBytes) == device_after) << "seed " << seed;
        EXPECT_EQ(std::memcmp(host, host_after.data(), kBytes), 0) << "seed " << seed;
    }

    // By kernel, and nothing happened.
    void refused(std::vector<Rows> rows, void* host) {
        const std::uint64_t before = cuda->calls().launches;
        for (const Way way : {Way::out, Way::in}) {
            std::vector<Rows> these = rows;
            const Status status = copy(order(way, these, host, Engine::kernel));
            EXPECT_EQ(status.error_class(), MPI_ERR_UNSUPPORTED_OPERATION) << status.text();
        }
        EXPECT_EQ(cuda->calls().launches, before);
    }

    CUdeviceptr memory = 0;
    void* pinned = nullptr;
};

TEST_F(CudaRows, ByKernelAndByCopyEngineAtEveryWidthAndAlignment) {
    unsigned seed = 0;
    for (const Bytes unit : {1, 2, 4, 8, 16})
        for (const int count : {1, 2, 7, 80})
            for (const Way way : {Way::out, Way::in}) {
                ++seed;
                check(way, sets(count, seed, unit), pinned, Engine::kernel, seed);
                check(way, sets(count, seed, unit), pinned,
                      way == Way::out ? Engine::d2h : Engine::h2d, seed);
            }
}

TEST_F(CudaRows, OneLaunchTakesWhatATableHolds) {
    for (const int count : {1, 8, 9, 1000, static_cast<int>(kMostSetsOfKernel)}) {
        const std::uint64_t before = cuda->calls().launches;
        check(Way::out, sets(count, 5, 1), pinned, Engine::kernel, 5);
        check(Way::in, sets(count, 6, 1), pinned, Engine::kernel, 6);
        EXPECT_EQ(cuda->calls().launches - before, 2u) << count;
    }
    refused(sets(static_cast<int>(kMostSetsOfKernel) + 1, 5, 1), pinned);
}

TEST_F(CudaRows, PlanesOfRowsAreOneLaunch) {
    for (const Bytes unit : {1, 2, 4, 8, 16}) {
        // Three boxes, one behind the other, of 5 planes of 7 rows of 3 units.
        const Bytes width = 3 * unit, pitch = 5 * unit, plane = 64 * unit;
        std::vector<Rows> boxes;
        for (Bytes i = 0; i < 3; ++i)
            boxes.push_back({static_cast<std::ptrdiff_t>(i * 400 * unit),
                             static_cast<std::ptrdiff_t>(i * 200 * unit), width, 7, pitch, width, 5,
                             plane, 7 * width});
        const std::uint64_t before = cuda->calls().launches;
        check(Way::out, boxes, pinned, Engine::kernel, 7);
        check(Way::in, boxes, pinned, Engine::kernel, 8);
        EXPECT_EQ(cuda->calls().launches - before, 2u) << unit;
        while (boxes.size() <= kMostBoxesOfKernel)
            boxes.push_back(boxes.back());
        refused(boxes, pinned);
    }
}

// Parts of a copy: each has ends of its own, in other allocations.
TEST_F(CudaRows, OfSeveralAllocationsAreOneLaunch) {
    constexpr int kParts = 5;
    std::vector<CUdeviceptr> sources, sinks;
    for (int part = 0; part < kParts; ++part) {
        sources.push_back(allocate(kBytes));
        sinks.push_back(allocate(kBytes));
        classify(pointer(sources.back()), kBytes);
        classify(pointer(sinks.back()), kBytes);
    }
    unsigned seed = 20;
    for (const Bytes unit : {1, 4, 16})
        for (const int count : {1, 3, 900}) {
            std::vector<std::vector<Rows>> rows;
            std::vector<CopyPart> parts;
            std::vector<std::vector<std::uint8_t>> expected;
            Bytes bytes = 0;
            for (std::size_t part = 0; part < kParts; ++part) {
                ++seed;
                // The first part is one run, which is more than all others together.
                std::vector<Rows>& here = rows.emplace_back(sets(count, seed, unit));
                if (part == 0) here = {{0, 16, kBytes - 64, 1, 0, 0}};
                write(sources[part], pattern(kBytes, seed));
                write(sinks[part], pattern(kBytes, seed + 100));
                const std::vector<std::uint8_t> from = pattern(kBytes, seed);
                std::vector<std::uint8_t>& to = expected.emplace_back(pattern(kBytes, seed + 100));
                Bytes all = 0;
                for (const Rows& set : here) {
                    for (Bytes row = 0; row < set.count; ++row)
                        std::memcpy(
                            &to[static_cast<Bytes>(set.destination) + row * set.destination_pitch],
                            &from[static_cast<Bytes>(set.source) + row * set.source_pitch],
                            set.width);
                    all += set.bytes();
                }
                parts.push_back({pointer(sinks[part]), pointer(sources[part]), all, here});
                bytes += all;
            }
            Copy together;
            together.engine = Engine::kernel;
            together.bytes = bytes;
            together.parts = parts;
            const std::uint64_t before = cuda->calls().launches;
            const Status status = copy(together);
            ASSERT_TRUE(status.ok()) << status.text();
            EXPECT_EQ(cuda->calls().launches - before, 1u);
            for (std::size_t part = 0; part < kParts; ++part)
                EXPECT_TRUE(read(sinks[part], kBytes) == expected[part])
                    << "part " << part << " of " << count << " sets, seed " << seed;
            parts[3].source = pinned;
            together.parts = parts;
            EXPECT_EQ(copy(together).error_class(), MPI_ERR_UNSUPPORTED_OPERATION)
                << "the host's memory is no part";
        }
    for (std::size_t part = 0; part < kParts; ++part) {
        free(sources[part]);
        free(sinks[part]);
    }
}

TEST_F(CudaRows, PageableMemoryIsForTheCopyEngine) {
    std::vector<std::uint8_t> pageable(kBytes);
    refused(sets(7, 3, 1), pageable.data());
    check(Way::out, sets(7, 3, 1), pageable.data(), Engine::d2h, 3);
    check(Way::in, sets(7, 4, 1), pageable.data(), Engine::h2d, 4);
}

// Many at once: each has its table until it has ended.
TEST_F(CudaRows, LaunchesInFlightKeepTheirTables) {
    write(memory, pattern(kBytes));
    std::vector<std::vector<Rows>> all;
    std::deque<Completion> done;
    const Bytes share = kBytes / 6;
    std::vector<std::uint8_t> expected(kBytes), data = pattern(kBytes);
    std::memset(pinned, 0, kBytes);
    for (Bytes i = 0; i < 6; ++i) {
        std::vector<Rows>& rows = all.emplace_back();
        for (Bytes row = 0; row < 1000; ++row) {
            const Bytes at = i * share + row * 120 + row % 7;
            rows.push_back({static_cast<std::ptrdiff_t>(at - i * share),
                            static_cast<std::ptrdiff_t>(at), 10, 1, 10, 10});
            std::memcpy(&expected[at], &data[at], 10);
        }
        Copy order{static_cast<std::byte*>(pinned) + i * share, pointer(memory), 10000, 0,
                   Engine::kernel};
        order.rows = rows;
        cuda->copy(order, done.emplace_back(executor));
    }
    for (const Completion& each : done) {
        finish(each);
        EXPECT_TRUE(each.status().ok()) << each.status().text();
    }
    EXPECT_EQ(std::memcmp(pinned, expected.data(), kBytes), 0);
}

TEST_F(CudaRows, OutOfMemoryThatAResetTookIsAnError) {
    std::vector<std::uint8_t> host(kBytes, 1);
    std::vector<Rows> rows = sets(7, 3, 1);
    ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    const Status status = copy(order(Way::out, rows, host.data(), Engine::kernel));
    EXPECT_EQ(status.error_class(), MPI_ERR_OTHER) << status.text();
    EXPECT_TRUE(host == std::vector<std::uint8_t>(kBytes, 1));
}

TEST_F(CudaRows, WithoutKernelsTheCopyEngineDoesIt) {
    config.kernels = false;
    make_device();
    classify(pointer(memory), kBytes);
    refused(sets(90, 3, 1), pinned);
    check(Way::out, sets(90, 3, 1), pinned, Engine::d2h, 3);
    check(Way::in, sets(90, 4, 1), pinned, Engine::h2d, 4);
    check(Way::in, sets(90, 5, 1), pinned, Engine::h2d_2d, 5);
    EXPECT_EQ(cuda->calls().launches, 0u);
}

}  // namespace
}  // namespace gantry::device

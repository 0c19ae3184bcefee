// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/row_kernel.hpp"

#include "device/cuda/copies.hpp"
#include "device/kernels/images.hpp"
#include "device/kernels/move_rows.hpp"

#include <algorithm>

namespace gantry::device::cuda {
namespace {

// A block moves this much before another one helps it.
constexpr Bytes kBytesPerBlock = 8 * kKiB;
static_assert(kMostSetsOfKernel * sizeof(kernels::RowSet) <= RowTables::kTableBytes);
static_assert(kMostBoxesOfKernel == kernels::kSetsInParameters);
constexpr unsigned kWarpsOfBlock = kernels::kRowThreads / kernels::kWarp;
// The kernel counts units in 32 bits.
constexpr Bytes kMostBytes = 1 * kGiB;

bool is_box(const Rows& rows) {
    return rows.planes > 1;
}

kernels::RowSet set_of(const Rows& rows, const Rows& first) {
    return {static_cast<kernels::Word>(rows.destination - first.destination),
            static_cast<kernels::Word>(rows.source - first.source),
            rows.width,
            rows.count,
            rows.destination_pitch,
            rows.source_pitch};
}

// A table has room for this many sets more than a copy.
constexpr std::size_t kMostInTable = RowTables::kTableBytes / sizeof(kernels::RowSet);
// A row is cut between units of any width.
constexpr Bytes kCutAt = 128;

// Writes a set in pieces of about `share` bytes, at most `most` of them, since a warp takes a whole one.
// How many they are.
std::size_t write_cut(kernels::RowSet set, Bytes share, std::size_t most, kernels::RowSet* to) {
    std::size_t pieces = 0;
    const auto cut = [&](kernels::Word count, kernels::Word width) {
        to[pieces] = set;
        to[pieces].count = count;
        to[pieces++].width = width;
    };
    if (set.count > 1) {
        const kernels::Word rows = std::max<Bytes>(share / set.width, 1);
        while (set.count > rows && pieces + 1 < most) {
            cut(rows, set.width);
            set.destination += rows * set.destination_pitch;
            set.source += rows * set.source_pitch;
            set.count -= rows;
        }
    } else {
        const kernels::Word width = round_up(share, kCutAt);
        while (set.width > width && pieces + 1 < most) {
            cut(1, width);
            set.destination += width;
            set.source += width;
            set.width -= width;
        }
    }
    cut(set.count, set.width);
    return pieces;
}

}  // namespace

CUdeviceptr RowKernel::reached(const void* address, bool on_host) {
    if (!on_host) return device_address(address);
    CUdeviceptr seen = 0;
    return driver_.call(driver_.cu.cuMemHostGetDevicePointer_v2, &seen, const_cast<void*>(address),
                        0u) == CUDA_SUCCESS
               ? seen
               : 0;
}

bool RowKernel::start(const Copy& copy, Host host, CUstream stream, RowTables::Held& held) {
    const std::span<const Rows> sets = copy.rows;
    const bool boxes = std::ranges::any_of(sets, is_box);
    if (copy.bytes > kMostBytes || (boxes && sets.size() > kMostBoxesOfKernel) ||
        sets.size() > kMostSetsOfKernel || !load())
        return false;
    const CUdeviceptr destination = reached(copy.destination, host == Host::destination);
    const CUdeviceptr source = reached(copy.source, host == Host::source);
    if (destination == 0 || source == 0) return false;
    kernels::MoveRows work{};
    kernels::RowSet* to = work.set;
    RowTables::Table table;
    if (sets.size() > kernels::kSetsInParameters) {
        table = tables_.take();
        if (table.memory == nullptr) return false;
        work.table = table.device;
        to = reinterpret_cast<kernels::RowSet*>(table.memory);
    }
    // The ends are those of the first row: of all others only distances are needed.
    const Rows& first = sets.front();
    if (boxes) {
        work.boxes = 1;
        for (std::size_t i = 0; i < sets.size(); ++i)
            work.planes[i] = {sets[i].planes, sets[i].destination_plane, sets[i].source_plane};
    }
    std::size_t written = 0;
    const Bytes share = std::max<Bytes>(divide_up(copy.bytes, enough_blocks_ * kWarpsOfBlock),
                                        kBytesPerBlock / kWarpsOfBlock);
    for (std::size_t i = 0; i < sets.size(); ++i) {
        const kernels::RowSet set = set_of(sets[i], first);
        if (work.table == 0)
            to[written++] = set;
        else
            written +=
                write_cut(set, share, kMostInTable - written - (sets.size() - i - 1), to + written);
    }
    work.destination = destination + static_cast<CUdeviceptr>(first.destination);
    work.source = source + static_cast<CUdeviceptr>(first.source);
    work.sets = written;
    const auto blocks = static_cast<unsigned>(std::clamp<Bytes>(
        std::max<Bytes>(divide_up(copy.bytes, kBytesPerBlock), divide_up(written, kWarpsOfBlock)),
        1, enough_blocks_));
    work.parts = std::max<Bytes>(Bytes{blocks} * kWarpsOfBlock / written, 1);
    void* parameters[] = {&work};
    const CUresult result =
        driver_.call(driver_.cu.cuLaunchKernel, kernel_, blocks, 1u, 1u, kernels::kRowThreads, 1u,
                     1u, 0u, stream, static_cast<void**>(parameters), static_cast<void**>(nullptr));
    if (result == CUDA_SUCCESS) {
        held = table.held;
        return true;
    }
    module_.give_up("cuLaunchKernel", result, context_.gpu);
    tables_.give_back(table.held);
    return false;
}

void RowKernel::close() {
    module_.close();
    tables_.close();
    abandon();
}

}  // namespace gantry::device::cuda

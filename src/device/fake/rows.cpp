// SPDX-License-Identifier: BSD-3-Clause
//
// FakeDevice's copies of rows, by copy engines or by kernels.
#include "device/fake/device.hpp"

#include "device/kernels/move_rows.hpp"

#include <mpi.h>

#include <cstring>
#include <utility>

namespace gantry::device::fake {

using model::Operation;

// How long a kernel takes for rows that go so.
double FakeDevice::row_time(Operation operation, Bytes bytes) const {
    const model::Gpu& gpu = gpus_.machine().gpu;
    const auto time = [bytes](const model::CopyCost& way, double part) {
        return static_cast<double>(way.rate.time(bytes)) / part;
    };
    switch (operation) {
        case Operation::d2h: return time(gpu.d2h, 1);
        case Operation::d2d: return time(gpu.d2d, 1);
        case Operation::peer: return time(gpu.peer, gpu.kernel.peer_stores);
        case Operation::peer_get: return time(gpu.peer, gpu.kernel.peer_loads);
        default: return time(gpu.h2d, 1);
    }
}

void FakeDevice::copy_rows(const Copy& copy, Completion& done) {
    const CopyPart whole{copy.destination, copy.source, copy.bytes, copy.rows};
    copy_rows_of(copy, std::span(&whole, 1), done);
}

void FakeDevice::copy_rows_of(const Copy& copy, std::span<const CopyPart> parts, Completion& done) {
    struct Set {
        std::byte* to;
        const std::byte* from;
        Rows rows;
    };
    std::vector<Set> sets;
    std::size_t number = 0;
    for (const CopyPart& part : parts)
        number += part.rows.size();
    const model::Gpu& gpu = gpus_.machine().gpu;
    double moved = 0;  // by a kernel: how long
    model::Work work;
    const bool by_kernel = copy.engine == Engine::kernel;
    bool reached = number <= kMostSetsOfKernel;
    for (const CopyPart& part : parts) {
        for (const Rows& rows : part.rows) {
            const auto whole = [&rows](Bytes pitch, Bytes plane) {
                return (rows.planes - 1) * plane + (rows.count - 1) * pitch + rows.width;
            };
            const Result<Place> from =
                place(static_cast<const std::byte*>(part.source) + rows.source,
                      whole(rows.source_pitch, rows.source_plane));
            const Result<Place> to =
                place(static_cast<std::byte*>(part.destination) + rows.destination,
                      whole(rows.destination_pitch, rows.destination_plane));
            if (!from.ok() || !to.ok()) {
                finish({&done, (from.ok() ? to : from).status().with("fake rows")});
                return;
            }
            work = work_of(copy, from.value(), to.value());
            moved += row_time(work.operation, rows.bytes());
            // Of another GPU a kernel reaches what is mapped for it, not what is this process's own.
            const auto reaches = [&](const Place& end, const void* address) {
                if (end.kind == MemoryKind::host) return false;
                if (end.kind != MemoryKind::device || end.gpu == first_gpu_ + copy.gpu) return true;
                std::uintptr_t base = 0;
                const Mapping* const mapping = mapping_of(address, &base);
                return mapping != nullptr && mapping->opened != nullptr;
            };
            GANTRY_ASSERT(rows.planes == 1 || by_kernel);
            reached = reached && reaches(from.value(), part.source) &&
                      reaches(to.value(), part.destination) &&
                      (rows.planes == 1 || number <= kMostBoxesOfKernel);
            sets.push_back({to.value().bytes, from.value().bytes, rows});
        }
    }
    if (by_kernel && !reached) {
        finish(
            {&done, failure(MPI_ERR_UNSUPPORTED_OPERATION, "fake rows: no kernel can move them")});
        return;
    }
    model::Interval interval;
    if (by_kernel) {
        ++counts_.row_launches;
        processor_.spend(gpu.calls.launch);
        interval = reserve(copy.gpu, {Operation::kernel, copy.bytes, 1, kernels::kRowThreads});
        interval.end += static_cast<Nanoseconds>(moved);
    } else {
        for (const Set& set : sets) {
            processor_.spend(gpu.calls.copy);
            work.rows = set.rows.count;
            work.bytes = set.rows.bytes();
            ++counts_.copies[static_cast<int>(work.operation)];
            counts_.bytes[static_cast<int>(work.operation)] += work.bytes;
            interval = reserve(copy.gpu, work);
        }
    }
    interval.end = behind_resident(copy.gpu, work.operation, interval.end);
    if (hangs(interval.end)) return never_end_.push_back(&done);
    const Status status = fault_of(copy);
    const bool flag = copy.notice == Notice::flag;
    gpus_.timeline().at(interval.end, [this, sets = std::move(sets), &done, status, flag] {
        if (dead_) return never_end_.push_back(&done);
        for (const Set& set : sets) {
            gpus_.timeline().note(static_cast<std::uint64_t>(rank_), set.rows.bytes());
            for (Bytes row = 0; status.ok() && row < set.rows.count * set.rows.planes; ++row) {
                const Bytes plane = row / set.rows.count, in_plane = row % set.rows.count;
                std::memmove(
                    set.to + plane * set.rows.destination_plane +
                        in_plane * set.rows.destination_pitch,
                    set.from + plane * set.rows.source_plane + in_plane * set.rows.source_pitch,
                    set.rows.width);
            }
        }
        finish({&done, status, -1, flag});
    });
}

}  // namespace gantry::device::fake

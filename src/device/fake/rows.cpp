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

void FakeDevice::copy_rows(const Copy& copy, Completion& done) {
    struct Set {
        std::byte* to;
        const std::byte* from;
        Rows rows;
    };
    std::vector<Set> sets;
    model::Work work;
    const bool by_kernel = copy.engine == Engine::kernel;
    bool reached = copy.rows.size() <= kMostSetsOfKernel;
    for (const Rows& rows : copy.rows) {
        const auto whole = [&rows](Bytes pitch, Bytes plane) {
            return (rows.planes - 1) * plane + (rows.count - 1) * pitch + rows.width;
        };
        const Result<Place> from = place(static_cast<const std::byte*>(copy.source) + rows.source,
                                         whole(rows.source_pitch, rows.source_plane));
        const Result<Place> to = place(static_cast<std::byte*>(copy.destination) + rows.destination,
                                       whole(rows.destination_pitch, rows.destination_plane));
        if (!from.ok() || !to.ok()) {
            finished_.push_back({&done, (from.ok() ? to : from).status().with("fake rows")});
            return;
        }
        work = work_of(copy, from.value(), to.value());
        // Of another GPU a kernel reaches what is mapped for it, not what is this process's own.
        const auto reaches = [&](const Place& end, const void* address) {
            if (end.kind != MemoryKind::device || end.gpu == first_gpu_ + copy.gpu) return true;
            std::uintptr_t base = 0;
            const Mapping* const mapping = mapping_of(address, &base);
            return mapping != nullptr && mapping->opened != nullptr;
        };
        reached = reached && reaches(from.value(), copy.source) &&
                  reaches(to.value(), copy.destination) &&
                  (rows.planes == 1 || copy.rows.size() <= kMostBoxesOfKernel);
        GANTRY_ASSERT(rows.planes == 1 || by_kernel);
        reached =
            reached && from.value().kind != MemoryKind::host && to.value().kind != MemoryKind::host;
        sets.push_back({to.value().bytes, from.value().bytes, rows});
    }
    if (by_kernel && !reached) {
        finished_.push_back(
            {&done, failure(MPI_ERR_UNSUPPORTED_OPERATION, "fake rows: no kernel can move them")});
        return;
    }
    const model::Gpu& gpu = gpus_.machine().gpu;
    model::Interval interval;
    if (by_kernel) {
        ++counts_.row_launches;
        processor_.spend(gpu.calls.launch);
        interval = reserve(copy.gpu, {Operation::kernel, copy.bytes, 1, kernels::kRowThreads});
        const model::CopyCost& way =
            work.operation == Operation::d2h                                             ? gpu.d2h
            : work.operation == Operation::d2d                                           ? gpu.d2d
            : work.operation == Operation::peer || work.operation == Operation::peer_get ? gpu.peer
                                                                                         : gpu.h2d;
        const double part = work.operation == Operation::peer       ? gpu.kernel.peer_stores
                            : work.operation == Operation::peer_get ? gpu.kernel.peer_loads
                                                                    : 1;
        interval.end +=
            static_cast<Nanoseconds>(static_cast<double>(way.rate.time(copy.bytes)) / part);
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
        finished_.push_back({&done, status, -1, flag});
    });
}

}  // namespace gantry::device::fake

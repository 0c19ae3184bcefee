// SPDX-License-Identifier: BSD-3-Clause
//
// FakeDevice's reductions: a kernel that reads all vectors, and writes the result, applied at its end.
#include "device/fake/device.hpp"
#include "device/kernels/reduce.hpp"
#include "device/reduce_kernels.hpp"

#include <mpi.h>

#include <cstring>

namespace gantry::device::fake {
namespace {

// ((a op b) op c) ...: of each step the right operand is replaced.
void reduce_all(const Reduce& reduce, const std::vector<std::byte*>& sources, Bytes bytes,
                const std::vector<std::byte*>& destinations) {
    const layout::Reduction combine = layout::reduction(reduce.operation, reduce.element);
    std::vector<std::byte> all(sources.front(), sources.front() + bytes);
    for (std::size_t i = 1; i < sources.size(); ++i) {
        std::vector<std::byte> next(sources[i], sources[i] + bytes);
        combine(all.data(), next.data(), reduce.count);
        all = std::move(next);
    }
    for (std::byte* destination : destinations)
        std::memcpy(destination, all.data(), bytes);
}

}  // namespace

void FakeDevice::reduce(const Reduce& reduce, Completion& done) {
    if (reduce.count == 0) return done.complete(success());
    const std::optional<ReduceKernel> how = reduce_kernel(reduce.operation, reduce.element);
    if (launches_ == Launches::none || !how || reduce.sources.empty() ||
        reduce.sources.size() > kMostReduced || reduce.also.size() >= kMostReduced)
        return Device::reduce(reduce, done);
    const Bytes bytes = reduce.count * how->element;
    std::vector<std::byte*> sources, destinations;
    const auto reached = [&](const void* vector, std::byte** at) {
        Result<Place> where = place(vector, bytes);
        if (!where.ok()) return false;
        *at = where->bytes;
        const bool aligned = reinterpret_cast<std::uintptr_t>(vector) % how->alignment == 0;
        return aligned && (where->kind == MemoryKind::device || where->kind == MemoryKind::managed);
    };
    bool all_reached = reached(reduce.destination, &destinations.emplace_back());
    for (const void* destination : reduce.also)
        all_reached = all_reached && reached(destination, &destinations.emplace_back());
    for (const void* source : reduce.sources)
        all_reached = all_reached && reached(source, &sources.emplace_back());
    if (!all_reached)
        return done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION,
                                     "fake {} of {} elements: not all vectors are on GPU {}",
                                     layout::name(reduce.operation), reduce.count, reduce.gpu));
    ++in_flight_;
    ++counts_.reductions;
    counts_.reduced += bytes;
    const model::Gpu& gpu = gpus_.machine().gpu;
    processor_.spend(gpu.calls.launch);
    model::Interval interval =
        reserve(reduce.gpu, {model::Operation::kernel, bytes, 1, kernels::kReduceThreads});
    // A copy inside the GPU reads and writes each byte once.
    interval.end += gpu.d2d.rate.time(bytes * (sources.size() + destinations.size()) / 2);
    if (hangs(interval.end)) return never_end_.push_back(&done);
    Copy like;
    like.bytes = bytes;
    like.gpu = reduce.gpu;
    const bool fails = faults.fail_reduction > 0 && --faults.fail_reduction == 0;
    const Status status = fails
                              ? failure(MPI_ERR_OTHER, "fake {} on GPU {}: a fault set by the test",
                                        layout::name(reduce.operation), reduce.gpu)
                              : fault_of(like);
    gpus_.timeline().at(interval.end, [this, reduce, sources = std::move(sources), bytes,
                                       destinations = std::move(destinations), &done, status] {
        if (dead_) return never_end_.push_back(&done);
        gpus_.timeline().note(static_cast<std::uint64_t>(rank_), bytes);
        if (status.ok()) reduce_all(reduce, sources, bytes, destinations);
        finish({&done, status, -1, reduce.notice == Notice::flag});
    });
}

}  // namespace gantry::device::fake

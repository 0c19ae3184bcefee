// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/strided.hpp"

#include "layout/rows.hpp"
#include "p2p/protocols/stage.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace gantry::p2p {
namespace {

// A driver's queue holds about a thousand operations; then its calls wait.
constexpr std::size_t kSetsAtOnce = 64;

enum class Way : std::uint8_t { to_device, from_device };

// A piece as the device takes it.
struct Job {
    std::vector<device::Rows> rows;  // from `start` and from the packed end
    std::byte* start = nullptr;      // of the first row
    layout::Span span;               // of all rows, from the buffer's address
    plan::StridedPiece numbers;
};

Job job_of(const Piece& piece, Way way) {
    Job job;
    layout::RowWalk walk(*piece.buffer.layout, piece.first, piece.bytes);
    std::ptrdiff_t first = 0;
    for (layout::Rows each; walk.next(each);) {
        const std::ptrdiff_t high =
            each.offset + static_cast<std::ptrdiff_t>((each.count - 1) * each.pitch + each.width);
        if (job.rows.empty()) {
            first = each.offset;
            job.span = {first, high};
        }
        job.span = {std::min(job.span.low, each.offset), std::max(job.span.high, high)};
        device::Rows rows{each.offset - first, static_cast<std::ptrdiff_t>(each.packed),
                          each.width,          each.count,
                          each.pitch,          each.packed_pitch};
        if (way == Way::from_device) {
            std::swap(rows.destination, rows.source);
            std::swap(rows.destination_pitch, rows.source_pitch);
        }
        job.rows.push_back(rows);
        job.numbers.rows += each.count;
    }
    job.start = static_cast<std::byte*>(piece.buffer.address) + first;
    job.numbers.bytes = piece.bytes;
    job.numbers.sets = job.rows.size();
    job.numbers.span = job.span.bytes();
    job.numbers.out = way == Way::from_device;
    return job;
}

bool in_one_allocation(const Piece& piece, const layout::Span& span) {
    return device::Range{piece.location.base, piece.location.size}.contains(
        reinterpret_cast<std::uintptr_t>(piece.buffer.address) +
            static_cast<std::uintptr_t>(span.low),
        span.bytes());
}

Task<Status> move(Executor& executor, Core& core, device::Copy copy) {
    Completion done(executor);
    core.device.copy(copy, done);
    Status status = co_await done;
    co_return status;
}

// Rows of several allocations: each by itself, and the device finds out where it is.
Task<Status> move_each(Executor& executor, Core& core, const Job& job, device::Copy ends) {
    for (const device::Rows& rows : job.rows) {
        for (Bytes begin = 0; begin < rows.count; begin += kSetsAtOnce) {
            Scope copies(executor);
            const Bytes end = std::min<Bytes>(rows.count, begin + kSetsAtOnce);
            for (Bytes row = begin; row < end; ++row) {
                device::Copy copy = ends;
                copy.destination = static_cast<std::byte*>(ends.destination) + rows.destination +
                                   row * rows.destination_pitch;
                copy.source = static_cast<const std::byte*>(ends.source) + rows.source +
                              row * rows.source_pitch;
                copy.bytes = rows.width;
                copies.spawn(move(executor, core, copy));
            }
            Status status = co_await copies.join(executor);
            GANTRY_CO_TRY(status);
        }
    }
    co_return success();
}

Task<Status> move_sets(Executor& executor, Core& core, const Job& job, device::Copy copy) {
    for (std::span<const device::Rows> left = job.rows; !left.empty();) {
        copy.rows = left.first(std::min(left.size(), kSetsAtOnce));
        left = left.subspan(copy.rows.size());
        copy.bytes = 0;
        for (const device::Rows& rows : copy.rows)
            copy.bytes += rows.width * rows.count;
        Status status = co_await move(executor, core, copy);
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

// All that lies between is read, too.
Task<Status> move_span(Executor& executor, Core& core, const Piece& piece, const layout::Span& span,
                       std::byte* packed) {
    Result<std::unique_ptr<std::byte[]>> whole =
        host_memory(span.bytes(), "a strided device message");
    if (!whole.ok()) co_return whole.status();
    Status status = co_await device_copy(executor, core, whole->get(),
                                         static_cast<std::byte*>(piece.buffer.address) + span.low,
                                         span.bytes(), piece.location.gpu, device::Engine::d2h);
    GANTRY_CO_TRY(status);
    layout::pack(*piece.buffer.layout, whole->get() - span.low, piece.first, piece.bytes, packed);
    co_return success();
}

Task<Status> move_piece(Executor& executor, Core& core, Piece piece, std::byte* packed, Way way,
                        plan::Movers movers, device::Notice notice) {
    if (piece.bytes == 0) co_return success();
    const Job job = job_of(piece, way);
    const bool out = way == Way::from_device;
    device::Copy copy;
    copy.destination = out ? packed : job.start;
    copy.source = out ? job.start : packed;
    copy.bytes = piece.bytes;
    copy.gpu = piece.location.gpu;
    copy.notice = notice;
    Status status;
    if (!in_one_allocation(piece, job.span)) {
        status = co_await move_each(executor, core, job, copy);
        co_return status;
    }
    const device::GpuFacts& gpu = core.device.gpu_facts(std::max(piece.location.gpu, 0));
    switch (plan::strided_way(gpu, job.numbers, movers)) {
        case plan::StridedWay::kernel:
            copy.engine = device::Engine::kernel;
            copy.rows = job.rows;
            status = co_await move(executor, core, copy);
            break;
        case plan::StridedWay::rows:
            copy.engine = out ? device::Engine::d2h : device::Engine::h2d;
            status = co_await move_sets(executor, core, job, copy);
            break;
        case plan::StridedWay::span:
            status = co_await move_span(executor, core, piece, job.span, packed);
            break;
    }
    co_return status;
}

}  // namespace

Result<device::Location> locate_blocks(device::Device& device, const Buffer& buffer) {
    const layout::Layout& layout = *buffer.layout;
    if (buffer.address != nullptr) {
        const layout::Span span = layout::span_of(layout, buffer.count);
        return device.classify(static_cast<std::byte*>(buffer.address) + span.low, span.bytes());
    }
    if (!device.active()) return device::Location{};
    std::optional<device::Location> all;
    for (std::uint64_t element = 0; element < buffer.count; ++element)
        for (const layout::Block& block : layout.blocks) {
            const auto address =
                static_cast<std::ptrdiff_t>(element) * layout.extent + block.offset;
            Result<device::Location> place =
                device.classify(reinterpret_cast<const void*>(address), block.bytes);
            if (!place.ok()) return place;
            if (!all) {
                all = *place;
            } else if (place->kind != all->kind || place->buffer_id != all->buffer_id) {
                device::Location several;
                several.gpu = std::max(place->gpu, all->gpu);
                if (several.gpu >= 0) several.kind = device::MemoryKind::device;
                all = several;
            }
        }
    return *all;
}

Task<Status> pack_from_device(Executor& executor, Core& core, Piece piece, std::byte* packed,
                              plan::Movers movers, device::Notice notice) {
    return move_piece(executor, core, piece, packed, Way::from_device, movers, notice);
}

Task<Status> unpack_to_device(Executor& executor, Core& core, Piece piece, const std::byte* packed,
                              plan::Movers movers, device::Notice notice) {
    return move_piece(executor, core, piece, const_cast<std::byte*>(packed), Way::to_device, movers,
                      notice);
}

}  // namespace gantry::p2p

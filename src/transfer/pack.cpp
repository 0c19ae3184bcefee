// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/pack.hpp"

#include "layout/rows.hpp"
#include "transfer/mover.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace gantry::transfer {
namespace {

// A driver's queue holds about a thousand operations; then its calls wait.
constexpr std::size_t kSetsAtOnce = 64;

// The rows of a piece, some at a time, as the device takes them: from start() and from the packed
// end.
class Batches {
  public:
    Batches(const Piece& piece, Way way, layout::Sets sets, std::size_t most)
        : piece_(piece), way_(way), walk_(*piece.buffer.layout, piece.first, piece.bytes, sets) {
        fill(most);
    }
    bool is_all() const { return seen_.bytes == piece_.bytes; }
    std::span<const device::Rows> rows() const { return rows_; }
    Bytes bytes() const { return bytes_; }
    std::byte* start() const { return static_cast<std::byte*>(piece_.buffer.address) + first_; }
    void next(std::size_t most) {
        rows_.clear();
        bytes_ = 0;
        fill(most);
    }
    // Until there are so many sets, or all.
    void fill(std::size_t most);
    // What the piece comes to, by what was seen so far.
    plan::StridedPiece numbers() const;

  private:
    const Piece& piece_;
    Way way_;
    layout::RowWalk walk_;
    std::vector<device::Rows> rows_;
    Bytes bytes_ = 0;
    std::ptrdiff_t first_ = 0;  // of the piece, from the buffer's address
    struct Seen {
        Bytes bytes = 0, rows = 0, sets = 0;
        layout::Span span;
    } seen_;
};

void Batches::fill(std::size_t most) {
    layout::Rows each;
    while (rows_.size() < most && walk_.next(each)) {
        const std::ptrdiff_t high = each.end();
        if (seen_.sets == 0) {
            first_ = each.offset;
            seen_.span = {first_, high};
        }
        seen_.span = {std::min(seen_.span.low, each.offset), std::max(seen_.span.high, high)};
        seen_.rows += each.count * each.planes;
        seen_.bytes += each.bytes();
        ++seen_.sets;
        device::Rows rows{each.offset - first_,
                          static_cast<std::ptrdiff_t>(each.packed),
                          each.width,
                          each.count,
                          each.pitch,
                          each.packed_pitch,
                          each.planes,
                          each.plane_pitch,
                          each.packed_plane_pitch};
        if (way_ == Way::from_device) {
            std::swap(rows.destination, rows.source);
            std::swap(rows.destination_pitch, rows.source_pitch);
            std::swap(rows.destination_plane, rows.source_plane);
        }
        bytes_ += each.bytes();
        rows_.push_back(rows);
    }
}

plan::StridedPiece Batches::numbers() const {
    const double scale = static_cast<double>(piece_.bytes) / static_cast<double>(seen_.bytes);
    const auto all = [scale](Bytes seen) {
        return static_cast<Bytes>(static_cast<double>(seen) * scale);
    };
    return {piece_.bytes,
            all(seen_.rows),
            all(seen_.sets),
            all(seen_.span.bytes()),
            way_ == Way::from_device,
            0};
}

// Rows of several allocations: each by itself, and the device finds out where it is.
Task<Status> move_each(Executor& executor, Context& context, std::span<const device::Rows> sets,
                       device::Copy ends) {
    for (const device::Rows& rows : sets) {
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
                copies.spawn(device_copy(executor, context, copy));
            }
            Status status = co_await copies.join(executor);
            GANTRY_CO_TRY(status);
        }
    }
    co_return success();
}

Task<Status> move_sets(Executor& executor, Context& context, std::span<const device::Rows> sets,
                       device::Copy copy) {
    while (!sets.empty()) {
        copy.rows = sets.first(std::min(sets.size(), kSetsAtOnce));
        sets = sets.subspan(copy.rows.size());
        copy.bytes = 0;
        for (const device::Rows& rows : copy.rows)
            copy.bytes += rows.bytes();
        Status status = co_await device_copy(executor, context, copy);
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

// All that lies between is read, too.
Task<Status> move_span(Executor& executor, Context& context, const Piece& piece,
                       std::byte* packed) {
    layout::RowWalk walk(*piece.buffer.layout, piece.first, piece.bytes);
    std::optional<layout::Span> span;
    for (layout::Rows each; walk.next(each);) {
        const std::ptrdiff_t high = each.end();
        if (!span) span = {each.offset, high};
        span = {std::min(span->low, each.offset), std::max(span->high, high)};
    }
    Result<std::unique_ptr<std::byte[]>> whole =
        host_memory(span->bytes(), "a strided device message");
    if (!whole.ok()) co_return whole.status();
    Status status = co_await device_copy(executor, context, whole->get(),
                                         static_cast<std::byte*>(piece.buffer.address) + span->low,
                                         span->bytes(), piece.location.gpu, device::Engine::d2h);
    GANTRY_CO_TRY(status);
    layout::pack(*piece.buffer.layout, whole->get() - span->low, piece.first, piece.bytes, packed);
    co_return success();
}

Task<Status> move_piece(Executor& executor, Context& context, Piece piece, std::byte* packed,
                        Way way, plan::Movers movers, device::Notice notice) {
    if (piece.bytes == 0) co_return success();
    Batches batches(piece, way, layout::Sets::rows, kSetsAtOnce);
    const bool out = way == Way::from_device;
    device::Copy copy;
    copy.destination = out ? packed : batches.start();
    copy.source = out ? batches.start() : packed;
    copy.gpu = piece.location.gpu;
    copy.notice = notice;
    Status status;
    if (!in_one_allocation(piece)) {
        for (; !batches.rows().empty(); batches.next(kSetsAtOnce)) {
            status = co_await move_each(executor, context, batches.rows(), copy);
            GANTRY_CO_TRY(status);
        }
        co_return success();
    }
    const device::GpuFacts& gpu = context.device.gpu_facts(std::max(piece.location.gpu, 0));
    plan::StridedPiece numbers = batches.numbers();
    // What a launch takes as planes of rows, where those are few.
    std::optional<Batches> boxes;
    if (movers != plan::Movers::copy_engines && numbers.sets > 1) {
        boxes.emplace(piece, way, layout::Sets::boxes, device::kMostBoxesOfKernel);
        if (!boxes->is_all()) boxes.reset();
    }
    if (boxes) numbers.boxes = boxes->rows().size();
    plan::StridedWay by = plan::strided_way(gpu, numbers, movers);
    if (by == plan::StridedWay::kernel) {
        if (!boxes) batches.fill(device::kMostSetsOfKernel);
        Batches& launches = boxes ? *boxes : batches;
        copy.engine = device::Engine::kernel;
        for (; !launches.rows().empty(); launches.next(device::kMostSetsOfKernel)) {
            copy.rows = launches.rows();
            copy.bytes = launches.bytes();
            status = co_await device_copy(executor, context, copy);
            if (status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION) break;
            GANTRY_CO_TRY(status);
        }
        if (launches.rows().empty()) co_return success();
        by = plan::strided_way(gpu, batches.numbers(), plan::Movers::copy_engines);
    }
    if (by == plan::StridedWay::span) {
        status = co_await move_span(executor, context, piece, packed);
        co_return status;
    }
    // Copies of two rows stay off the compute queue of a GPU that others use, too.
    copy.engine = out                               ? device::Engine::d2h
                  : movers == plan::Movers::kernels ? device::Engine::h2d
                                                    : device::Engine::h2d_2d;
    for (; !batches.rows().empty(); batches.next(kSetsAtOnce)) {
        status = co_await move_sets(executor, context, batches.rows(), copy);
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

device::Location both(const device::Location& one, const device::Location& other) {
    if (one.kind == other.kind && one.buffer_id == other.buffer_id) return one;
    device::Location several;
    several.gpu = std::max(one.gpu, other.gpu);
    if (several.gpu >= 0) several.kind = device::MemoryKind::device;
    return several;
}

// Boxes where those are few, else tables of rows.
Task<Status> move_inside_gpu(Executor& executor, Context& context, Piece piece, std::byte* packed,
                             Way way, device::Notice notice) {
    if (piece.bytes == 0) co_return success();
    if (!context.tuning.kernels || !in_one_allocation(piece))
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "no kernel moves these blocks");
    Batches launches(piece, way, layout::Sets::boxes, device::kMostBoxesOfKernel);
    std::optional<Batches> tables;
    if (!launches.is_all())
        tables.emplace(piece, way, layout::Sets::rows, device::kMostSetsOfKernel);
    Batches& all = tables ? *tables : launches;
    const bool out = way == Way::from_device;
    device::Copy copy;
    copy.destination = out ? packed : all.start();
    copy.source = out ? all.start() : packed;
    copy.gpu = piece.location.gpu;
    copy.engine = device::Engine::kernel;
    copy.notice = notice;
    for (; !all.rows().empty(); all.next(device::kMostSetsOfKernel)) {
        copy.rows = all.rows();
        copy.bytes = all.bytes();
        Status status = co_await context.row_batch.move(executor, context, copy);
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

}  // namespace

bool in_one_allocation(const Piece& piece) {
    const layout::Span span = layout::span_of(*piece.buffer.layout, piece.buffer.count);
    return device::Range{piece.location.base, piece.location.size}.contains(
        reinterpret_cast<std::uintptr_t>(piece.buffer.address) +
            static_cast<std::uintptr_t>(span.low),
        span.bytes());
}

bool pays_aside(Context& context, const Piece& piece, Way way) {
    if (piece.bytes == 0 || !context.tuning.kernels || !in_one_allocation(piece)) return false;
    const int gpu = std::max(piece.location.gpu, 0);
    plan::StridedPiece numbers = Batches(piece, way, layout::Sets::rows, kSetsAtOnce).numbers();
    numbers.aside = true;
    const plan::Movers movers = context.arbiter.is_time_sliced(gpu) ? plan::Movers::kernels_by_turns
                                                                    : plan::Movers::kernels;
    return plan::strided_way(context.device.gpu_facts(gpu), numbers, movers) ==
           plan::StridedWay::kernel;
}

Task<Status> pack_inside_gpu(Executor& executor, Context& context, Piece piece, std::byte* packed,
                             device::Notice notice) {
    return move_inside_gpu(executor, context, piece, packed, Way::from_device, notice);
}

Task<Status> unpack_inside_gpu(Executor& executor, Context& context, Piece piece, std::byte* packed,
                               device::Notice notice) {
    return move_inside_gpu(executor, context, piece, packed, Way::to_device, notice);
}

Result<device::Location> locate_blocks(device::Device& device, const Buffer& buffer) {
    const layout::Layout& layout = *buffer.layout;
    if (buffer.address != nullptr) {
        const layout::Span span = layout::span_of(layout, buffer.count);
        return device.classify(static_cast<std::byte*>(buffer.address) + span.low, span.bytes());
    }
    if (!device.active()) return device::Location{};
    std::optional<device::Location> all;
    layout::RowWalk walk(layout, 0, buffer.bytes());
    for (layout::Rows rows; walk.next(rows);) {
        // Rows mostly lie in one allocation; else the device says so, and each may lie elsewhere.
        Result<device::Location> place =
            device.classify(reinterpret_cast<const void*>(rows.offset),
                            static_cast<Bytes>(rows.end() - rows.offset));
        if (place.ok()) {
            all = all ? both(*all, *place) : *place;
            continue;
        }
        for (Bytes row = 0; row < rows.count; ++row) {
            place =
                device.classify(reinterpret_cast<const void*>(
                                    rows.offset + static_cast<std::ptrdiff_t>(row * rows.pitch)),
                                rows.width);
            if (!place.ok()) return place;
            all = all ? both(*all, *place) : *place;
        }
    }
    return *all;
}

Task<Status> pack_from_device(Executor& executor, Context& context, Piece piece, std::byte* packed,
                              plan::Movers movers, device::Notice notice) {
    return move_piece(executor, context, piece, packed, Way::from_device, movers, notice);
}

Task<Status> unpack_to_device(Executor& executor, Context& context, Piece piece,
                              const std::byte* packed, plan::Movers movers, device::Notice notice) {
    return move_piece(executor, context, piece, const_cast<std::byte*>(packed), Way::to_device,
                      movers, notice);
}

}  // namespace gantry::transfer

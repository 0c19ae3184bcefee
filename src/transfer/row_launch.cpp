// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/row_launch.hpp"

#include "layout/rows.hpp"
#include "transfer/mover.hpp"

#include <algorithm>
#include <optional>

namespace gantry::transfer {
namespace {

// The kernel counts units in 32 bits.
constexpr Bytes kMostOfLaunch = 1 * kGiB;

std::size_t flat_sets_of(const device::Rows& rows) {
    return std::min(rows.planes, rows.count);
}

// Planes of rows as rows, whichever way there are fewer sets.
void flatten_into(std::vector<device::Rows>& flat, const device::Rows& box) {
    device::Rows rows = box;
    Bytes sets = box.planes, to = box.destination_plane, from = box.source_plane;
    if (box.count < box.planes) {
        sets = box.count;
        to = box.destination_pitch;
        from = box.source_pitch;
        rows.count = box.planes;
        rows.destination_pitch = box.destination_plane;
        rows.source_pitch = box.source_plane;
    }
    rows.planes = 1;
    rows.destination_plane = rows.source_plane = 0;
    for (Bytes set = 0; set < sets; ++set) {
        flat.push_back(rows);
        rows.destination += static_cast<std::ptrdiff_t>(to);
        rows.source += static_cast<std::ptrdiff_t>(from);
    }
}

}  // namespace

bool RowLaunch::add(void* destination, const void* source, std::span<const device::Rows> rows) {
    std::size_t sets = 0;
    Bytes bytes = 0;
    for (const device::Rows& each : rows) {
        sets += flat_sets_of(each);
        bytes += each.bytes();
    }
    if (!empty() &&
        (flat_sets_ + sets > device::kMostSetsOfKernel || bytes_ + bytes > kMostOfLaunch))
        return false;
    if (empty() || parts_.back().destination != destination || parts_.back().source != source)
        parts_.push_back({destination, source});
    parts_.back().bytes += bytes;
    parts_.back().sets += rows.size();
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    flat_sets_ += sets;
    bytes_ += bytes;
    return true;
}

void RowLaunch::flatten() {
    std::vector<device::Rows> flat;
    flat.reserve(flat_sets_);
    auto next = rows_.begin();
    for (Part& part : parts_) {
        const std::size_t before = flat.size();
        for (std::size_t set = 0; set < part.sets; ++set)
            flatten_into(flat, *next++);
        part.sets = flat.size() - before;
    }
    rows_ = std::move(flat);
}

Task<Status> RowLaunch::run(Executor& executor, Context& context, int gpu, device::Notice notice) {
    const auto is_box = [](const device::Rows& rows) { return rows.planes > 1; };
    if (rows_.size() > device::kMostBoxesOfKernel && std::ranges::any_of(rows_, is_box)) flatten();
    std::vector<device::CopyPart> parts;
    std::span<const device::Rows> rest(rows_);
    for (const Part& part : parts_) {
        parts.push_back({part.destination, part.source, part.bytes, rest.first(part.sets)});
        rest = rest.subspan(part.sets);
    }
    device::Copy copy;
    copy.engine = device::Engine::kernel;
    copy.gpu = gpu;
    copy.notice = notice;
    copy.bytes = bytes_;
    copy.parts = parts;
    Status moved = co_await device_copy(executor, context, copy);
    parts_.clear();
    rows_.clear();
    flat_sets_ = 0;
    bytes_ = 0;
    co_return moved;
}

// The rows of one move, one set after the other, from the first data bytes of its ends.
class RowMoves::Walk {
  public:
    explicit Walk(const Move& move) : move_(move) {
        start(move.source, from_);
        start(move.sink, to_);
    }
    bool next(device::Rows& rows) {
        if (!from_ && !to_) {
            rows = {};
            rows.width = std::exchange(left_, 0);
            return rows.width > 0;
        }
        layout::Rows from, to;
        if ((from_ && !from_->next(from)) || (to_ && !to_->next(to))) return false;
        const layout::Rows& known = from_ ? from : to;
        const Place source = from_ ? in_buffer(move_.source, from) : in_packed(known),
                    sink = to_ ? in_buffer(move_.sink, to) : in_packed(known);
        rows = {.destination = sink.first,
                .source = source.first,
                .width = known.width,
                .count = known.count,
                .destination_pitch = sink.pitch,
                .source_pitch = source.pitch,
                .planes = known.planes,
                .destination_plane = sink.plane_pitch,
                .source_plane = source.plane_pitch};
        return true;
    }

  private:
    // Where rows lie at one end, from its first data byte.
    struct Place {
        std::ptrdiff_t first;
        Bytes pitch, plane_pitch;
    };
    static Place in_buffer(const Buffer& end, const layout::Rows& rows) {
        return {rows.offset - end.layout->first, rows.pitch, rows.plane_pitch};
    }
    static Place in_packed(const layout::Rows& rows) {
        return {static_cast<std::ptrdiff_t>(rows.packed), rows.packed_pitch,
                rows.packed_plane_pitch};
    }
    void start(const Buffer& end, std::optional<layout::RowWalk>& walk) const {
        if (!end.contiguous())
            walk.emplace(*end.layout, 0, move_.source.bytes(), layout::Sets::boxes);
    }
    const Move& move_;
    Bytes left_ = move_.source.bytes();
    std::optional<layout::RowWalk> from_, to_;
};

bool RowMoves::are_alike(const Buffer& source, const Buffer& sink) {
    if (source.bytes() != sink.bytes()) return false;
    if (source.contiguous() || sink.contiguous()) return true;
    layout::RowWalk from(*source.layout, 0, source.bytes(), layout::Sets::boxes),
        to(*sink.layout, 0, sink.bytes(), layout::Sets::boxes);
    layout::Rows one, other;
    while (true) {
        const bool more = from.next(one), more_there = to.next(other);
        if (!more || !more_there) return more == more_there;
        if (one.width != other.width || one.count != other.count || one.planes != other.planes ||
            one.packed != other.packed || one.packed_pitch != other.packed_pitch ||
            one.packed_plane_pitch != other.packed_plane_pitch)
            return false;
    }
}

Task<Status> RowMoves::run(Executor& executor, Context& context, int gpu) {
    RowLaunch launch;
    for (const Move& move : moves_) {
        Walk walk(move);
        for (device::Rows rows; walk.next(rows);) {
            if (launch.add(move.sink.data(), move.source.data(), std::span(&rows, 1))) continue;
            Status moved = co_await launch.run(executor, context, gpu);
            GANTRY_CO_TRY(moved);
            launch.add(move.sink.data(), move.source.data(), std::span(&rows, 1));
        }
    }
    if (launch.empty()) co_return success();
    Status moved = co_await launch.run(executor, context, gpu);
    co_return moved;
}

}  // namespace gantry::transfer

// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/strided.hpp"

#include "layout/rows.hpp"
#include "p2p/protocols/stage.hpp"
#include "plan/strided.hpp"

#include <algorithm>
#include <optional>

namespace gantry::p2p {
namespace {

constexpr int kCopiesAtOnce = 64;

bool in_one_allocation(const Buffer& buffer, const layout::Span& span,
                       const device::Location& location) {
    return device::Range{location.base, location.size}.contains(
        reinterpret_cast<std::uintptr_t>(buffer.address) + static_cast<std::uintptr_t>(span.low),
        span.bytes());
}

enum class Way : std::uint8_t { to_device, from_device };

// One copy of a strided buffer: its ends and how many rows.
struct Move {
    std::byte* strided;
    std::byte* packed;
    layout::Rows rows;
    Way way;
    int gpu;
    bool together;  // all of the buffer lies in one allocation
};

Task<Status> move_rows(Executor& executor, Core& core, Move move) {
    const bool out = move.way == Way::from_device;
    device::Rows rows{move.rows.count, move.rows.pitch, move.rows.packed_pitch};
    if (out) std::swap(rows.destination_pitch, rows.source_pitch);
    device::Copy copy;
    copy.destination = out ? move.packed : move.strided;
    copy.source = out ? move.strided : move.packed;
    copy.bytes = move.rows.bytes();
    copy.gpu = move.gpu;
    if (move.together) copy.engine = out ? device::Engine::d2h : device::Engine::h2d;
    if (move.rows.count > 1) copy.rows = &rows;
    Completion done(executor);
    core.device.copy(copy, done);
    Status status = co_await done;
    co_return status;
}

// Rows inside one allocation go by one copy, others one by one.
Task<Status> move_blocks(Executor& executor, Core& core, Buffer buffer, int gpu, bool together,
                         Bytes bytes, std::byte* packed, Way way) {
    layout::RowWalk walk(*buffer.layout, bytes);
    layout::Rows rows;
    Bytes row = 0;
    bool more = walk.next(rows);
    while (more) {
        Scope copies(executor);
        for (int i = 0; more && i < kCopiesAtOnce; ++i) {
            layout::Rows each = rows;
            if (!together) {
                each.count = 1;
                each.offset += static_cast<std::ptrdiff_t>(row * rows.pitch);
                each.packed += row * rows.packed_pitch;
            }
            const Move move{static_cast<std::byte*>(buffer.address) + each.offset,
                            packed + each.packed,
                            each,
                            way,
                            gpu,
                            together};
            copies.spawn(move_rows(executor, core, move));
            row += each.count;
            if (row < rows.count) continue;
            row = 0;
            more = walk.next(rows);
        }
        Status status = co_await copies.join(executor);
        GANTRY_CO_TRY(status);
    }
    co_return success();
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

Task<Status> pack_from_device(Executor& executor, Core& core, Buffer buffer,
                              device::Location location, std::byte* packed) {
    const layout::Span span = layout::span_of(*buffer.layout, buffer.count);
    const bool together = in_one_allocation(buffer, span, location);
    if (!together || !plan::whole_span_wins(
                         core.device.gpu_facts(std::max(location.gpu, 0)), span.bytes(),
                         buffer.bytes(), layout::RowWalk::sets(*buffer.layout, buffer.bytes()))) {
        Status moved = co_await move_blocks(executor, core, buffer, location.gpu, together,
                                            buffer.bytes(), packed, Way::from_device);
        co_return moved;
    }
    Result<std::unique_ptr<std::byte[]>> whole =
        host_memory(span.bytes(), "a strided device message");
    if (!whole.ok()) co_return whole.status();
    Status status = co_await device_copy(executor, core, whole->get(),
                                         static_cast<std::byte*>(buffer.address) + span.low,
                                         span.bytes(), location.gpu, device::Engine::d2h);
    GANTRY_CO_TRY(status);
    layout::pack(*buffer.layout, whole->get() - span.low, 0, buffer.bytes(), packed);
    co_return success();
}

Task<Status> unpack_to_device(Executor& executor, Core& core, Buffer buffer,
                              device::Location location, Bytes bytes, const std::byte* packed) {
    const bool together =
        in_one_allocation(buffer, layout::span_of(*buffer.layout, buffer.count), location);
    Status moved = co_await move_blocks(executor, core, buffer, location.gpu, together, bytes,
                                        const_cast<std::byte*>(packed), Way::to_device);
    co_return moved;
}

}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
#include "rma/errand.hpp"

#include "layout/rows.hpp"

#include <array>
#include <cstring>

namespace gantry::rma {
namespace {

// Calls visit(address, bytes, place) for each block.
template <class Visit>
void for_each_block(const ErrandBox& box, const Visit& visit) {
    for (std::uint32_t i = 0; i < box.rows; ++i) {
        const ErrandRow& row = box.row[i];
        auto* address = reinterpret_cast<std::byte*>(row.address);
        Bytes place = row.packed;
        for (Bytes block = 0; block < row.count; ++block) {
            visit(address, row.width, place);
            address += row.pitch;
            place += row.packed_pitch;
        }
    }
}

}  // namespace

Bytes ErrandBox::name_rows(const Side& side, Bytes first, Bytes some) {
    bytes = some;
    rows = 0;
    if (side.contiguous()) {
        row[rows++] = {reinterpret_cast<std::uintptr_t>(side.at(first)), some, 1, 0, 0, 0};
        return 1;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(side.buffer.address);
    Bytes blocks = 0;
    layout::RowWalk walk(*side.buffer.layout, first, some);
    for (layout::Rows next; walk.next(next);)
        for (Bytes plane = 0; plane < next.planes; ++plane) {
            if (rows == kRows) return 0;
            const auto offset = next.offset + static_cast<std::ptrdiff_t>(plane * next.plane_pitch);
            row[rows++] = {address + static_cast<std::uint64_t>(offset),
                           next.width,
                           next.count,
                           next.pitch,
                           next.packed + plane * next.packed_plane_pitch,
                           next.packed_pitch};
            blocks += next.count;
        }
    return blocks;
}

Status ErrandBox::carry_out() {
    if (verb == Verb::put) {
        for_each_block(*this, [this](std::byte* to, Bytes width, Bytes place) {
            std::memcpy(to, data + place, width);
        });
        return success();
    }
    alignas(64) std::array<std::byte, kData> there;
    std::byte* const read = verb == Verb::get ? data : there.data();
    for_each_block(*this, [read](const std::byte* from, Bytes width, Bytes place) {
        std::memcpy(read + place, from, width);
    });
    if (verb == Verb::get) return success();
    // Items change in a copy, and go back to their places.
    alignas(64) std::array<std::byte, kData> before;
    if (verb != Verb::accumulate) std::memcpy(before.data(), read, bytes);
    const Change change{verb, operation, items_of(element), data, data + bytes, nullptr};
    Side packed;
    packed.buffer.address = read;
    packed.buffer.count = bytes;
    GANTRY_TRY(change_host({packed, 0, bytes, 0}, change));
    for_each_block(*this, [read](std::byte* to, Bytes width, Bytes place) {
        std::memcpy(to, read + place, width);
    });
    if (verb != Verb::accumulate) std::memcpy(data, before.data(), bytes);
    return success();
}

}  // namespace gantry::rma

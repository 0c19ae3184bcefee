// SPDX-License-Identifier: BSD-3-Clause
//
// Packing on the host, by rows.
#include "layout/layout.hpp"
#include "layout/rows.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::layout {
namespace {

// The caches keep a tile while it is gone through block by block.
constexpr Bytes kTile = 16 * kKiB;

struct Strides {
    Bytes to, from;
};

// Rows of a width that the compiler knows are loads and stores.
template <Bytes kWidth>
void copy_rows(std::byte* to, const std::byte* from, Strides strides, Bytes count) {
    for (Bytes row = 0; row < count; ++row)
        std::memcpy(to + row * strides.to, from + row * strides.from, kWidth);
}

void copy_rows(std::byte* to, const std::byte* from, Strides strides, Bytes width, Bytes count) {
    switch (width) {
        case 1: return copy_rows<1>(to, from, strides, count);
        case 2: return copy_rows<2>(to, from, strides, count);
        case 4: return copy_rows<4>(to, from, strides, count);
        case 8: return copy_rows<8>(to, from, strides, count);
        case 12: return copy_rows<12>(to, from, strides, count);
        case 16: return copy_rows<16>(to, from, strides, count);
        case 24: return copy_rows<24>(to, from, strides, count);
        case 32: return copy_rows<32>(to, from, strides, count);
        default: break;
    }
    for (Bytes row = 0; row < count; ++row)
        std::memcpy(to + row * strides.to, from + row * strides.from, width);
}

// Calls visit(rows) for data bytes [first, first + bytes), a tile after the other; what the rows say
// of packed memory counts from `first`.
template <class Visitor>
void for_each_rows(const Layout& layout, Bytes first, Bytes bytes, Visitor visit) {
    if (bytes == layout.size && first == 0) {  // one element, mostly a small one
        for (const Rows& rows : layout.shape().rows)
            visit(rows);
        return;
    }
    const Bytes tile = layout.shape().widest < kTile / 4 ? kTile : bytes;
    for (Bytes done = 0; done < bytes; done += tile) {
        RowWalk walk(layout, first + done, std::min(tile, bytes - done));
        for (Rows rows; walk.next(rows);) {
            rows.packed += done;
            visit(rows);
        }
    }
}

}  // namespace

Span span_of(const Layout& layout, std::uint64_t count) {
    if (count == 0 || layout.blocks.empty()) return {};
    Span span = layout.shape().span;
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(count - 1) * layout.extent;
    (last < 0 ? span.low : span.high) += last;
    return span;
}

Layout contiguous_layout(Bytes size) {
    return Layout{size, static_cast<std::ptrdiff_t>(size), {Block{0, size}}};
}

void pack(const Layout& layout, const void* buffer, Bytes first, Bytes bytes, void* packed) {
    if (layout.size == 0 || bytes == 0) return;
    const auto* from = static_cast<const std::byte*>(buffer);
    auto* to = static_cast<std::byte*>(packed);
    if (layout.contiguous()) {
        std::memcpy(to, from + first, bytes);
        return;
    }
    for_each_rows(layout, first, bytes, [to, from](const Rows& rows) {
        copy_rows(to + rows.packed, from + rows.offset, {rows.packed_pitch, rows.pitch}, rows.width,
                  rows.count);
    });
}

void unpack(const Layout& layout, void* buffer, Bytes first, Bytes bytes, const void* packed) {
    if (layout.size == 0 || bytes == 0) return;
    auto* to = static_cast<std::byte*>(buffer);
    const auto* from = static_cast<const std::byte*>(packed);
    if (layout.contiguous()) {
        std::memcpy(to + first, from, bytes);
        return;
    }
    for_each_rows(layout, first, bytes, [to, from](const Rows& rows) {
        copy_rows(to + rows.offset, from + rows.packed, {rows.pitch, rows.packed_pitch}, rows.width,
                  rows.count);
    });
}

}  // namespace gantry::layout

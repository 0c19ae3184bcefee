// SPDX-License-Identifier: BSD-3-Clause
//
// Packing on the host: walks the blocks of the elements that the byte range covers.
#include "layout/layout.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::layout {
namespace {

// Calls visit(address in the buffer, offset in the packed range, bytes) for each piece of data
// bytes [first, first + bytes).
template <class Visitor>
void for_each_piece(const Layout& layout, std::byte* buffer, Bytes first, Bytes bytes,
                    Visitor visit) {
    if (layout.size == 0 || bytes == 0) return;
    if (layout.contiguous()) {
        visit(buffer + first, Bytes{0}, bytes);
        return;
    }
    Bytes element = first / layout.size;
    Bytes skip = first % layout.size;
    Bytes done = 0;
    while (done < bytes) {
        std::byte* start = buffer + static_cast<std::ptrdiff_t>(element) * layout.extent;
        for (const Block& block : layout.blocks) {
            if (skip >= block.bytes) {
                skip -= block.bytes;
                continue;
            }
            const Bytes piece = std::min(block.bytes - skip, bytes - done);
            visit(start + block.offset + static_cast<std::ptrdiff_t>(skip), done, piece);
            done += piece;
            skip = 0;
            if (done == bytes) return;
        }
        ++element;
    }
}

}  // namespace

Span span_of(const Layout& layout, std::uint64_t count) {
    if (count == 0 || layout.blocks.empty()) return {};
    Span span{layout.blocks[0].offset, layout.blocks[0].offset};
    for (const Block& block : layout.blocks) {
        span.low = std::min(span.low, block.offset);
        span.high = std::max(span.high, block.offset + static_cast<std::ptrdiff_t>(block.bytes));
    }
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(count - 1) * layout.extent;
    (last < 0 ? span.low : span.high) += last;
    return span;
}

Layout contiguous_layout(Bytes size) {
    return Layout{size, static_cast<std::ptrdiff_t>(size), {Block{0, size}}};
}

void pack(const Layout& layout, const void* buffer, Bytes first, Bytes bytes, void* packed) {
    // The walk does not write through the address; const is cast away to share it with unpack.
    auto* base = const_cast<std::byte*>(static_cast<const std::byte*>(buffer));
    for_each_piece(layout, base, first, bytes, [packed](std::byte* at, Bytes offset, Bytes piece) {
        std::memcpy(static_cast<std::byte*>(packed) + offset, at, piece);
    });
}

void unpack(const Layout& layout, void* buffer, Bytes first, Bytes bytes, const void* packed) {
    for_each_piece(layout, static_cast<std::byte*>(buffer), first, bytes,
                   [packed](std::byte* at, Bytes offset, Bytes piece) {
                       std::memcpy(at, static_cast<const std::byte*>(packed) + offset, piece);
                   });
}

}  // namespace gantry::layout

// SPDX-License-Identifier: BSD-3-Clause
//
// The canonical form of an MPI datatype: which bytes of one element carry data, and how far apart
// elements are. Everything below the MPI layer works on Layouts and never looks at how a type was
// built. Blocks are sorted as the type map is (the order in which bytes travel), adjacent ones
// merged.
//
//   element 0                     element 1
//   |<- block ->|   |<- block ->| |<- block ->| ...
//   |<--------- extent ---------->|
#pragma once

#include "base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gantry::layout {

struct Block {
    std::ptrdiff_t offset = 0;
    Bytes bytes = 0;
    bool operator==(const Block&) const = default;
};

// The bytes around an address that something touches.
struct Span {
    std::ptrdiff_t low = 0, high = 0;
    Bytes bytes() const { return static_cast<Bytes>(high - low); }
};

// Runs of equal width, equally far apart in the buffer and in packed memory (rows.hpp).
struct Rows {
    std::ptrdiff_t offset = 0;  // of the first one, from the buffer's address
    Bytes packed = 0;           // of the first one, in packed memory
    Bytes width = 0;
    Bytes count = 0;
    Bytes pitch = 0, packed_pitch = 0;  // from one to the next, at least `width` where there is one
    Bytes bytes() const { return width * count; }
    bool operator==(const Rows&) const = default;
};

// What an element's blocks come to, however many there are.
struct Shape {
    std::vector<Rows> rows;  // in packed order
    Span span;
    Bytes widest = 0;  // of its rows
};

struct Layout {
    Bytes size = 0;             // data bytes of one element
    std::ptrdiff_t extent = 0;  // distance of elements
    std::vector<Block> blocks;
    // Worked out when somebody asks first; the blocks stay as they are from then on.
    mutable std::shared_ptr<const Shape> known_shape = nullptr;
    const Shape& shape() const;
    // True when any number of elements is one run of bytes that starts at the buffer's address.
    bool contiguous() const {
        return size == 0 || (blocks.size() == 1 && blocks[0].offset == 0 &&
                             extent == static_cast<std::ptrdiff_t>(size));
    }
    std::ptrdiff_t first_byte() const { return blocks.empty() ? 0 : blocks[0].offset; }
};

// The bytes around a buffer's address that a number of its elements touch. Blocks may stand in any
// order and elements go down.
Span span_of(const Layout& layout, std::uint64_t count);

// A layout of `size` bytes without holes.
Layout contiguous_layout(Bytes size);

// Copies the data bytes [first, first + bytes) of `count` elements at `buffer` to or from packed
// memory. Host memory only.
void pack(const Layout& layout, const void* buffer, Bytes first, Bytes bytes, void* packed);
void unpack(const Layout& layout, void* buffer, Bytes first, Bytes bytes, const void* packed);

}  // namespace gantry::layout

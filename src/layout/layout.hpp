// SPDX-License-Identifier: BSD-3-Clause
//
// The canonical form of an MPI datatype: which bytes of one element carry data, and how far apart
// elements are. Everything below the MPI layer works on Layouts and never looks at how a type was
// built. Bytes travel in the order of the type map: "packed" is that order without gaps.
//
//   element 0                     element 1
//   |<-  run  ->|   |<-  run  ->| |<-  run  ->| ...
//   |<--------- extent ---------->|
//
// What an element is made of is described by a form (form.hpp). Nothing lists the runs of a regular
// one: rows.hpp goes through them, from any place.
#pragma once

#include "layout/form.hpp"

#include <cstdint>
#include <span>

namespace gantry::layout {

struct Block {
    std::ptrdiff_t offset = 0;
    Bytes bytes = 0;
    bool operator==(const Block&) const = default;
};

struct Layout {
    Bytes size = 0;             // data bytes of one element
    std::ptrdiff_t extent = 0;  // distance of elements
    FormPtr form;               // of one element; null: there is no data
    // What is asked of every message, out of the form.
    std::ptrdiff_t first = 0;  // the first data byte
    bool one_run = false;

    Layout() = default;
    Layout(FormPtr of_element, std::ptrdiff_t distance);

    // True when any number of elements is one run of bytes that starts at the buffer's address.
    bool contiguous() const {
        return size == 0 || (one_run && first == 0 && extent == static_cast<std::ptrdiff_t>(size));
    }
};

// The bytes around a buffer's address that a number of its elements touch. Runs may stand in any
// order and elements go down.
Span span_of(const Layout& layout, std::uint64_t count);

// A layout of `size` bytes without holes.
Layout contiguous_layout(Bytes size);
// A layout of these blocks, in packed order.
Layout listed_layout(std::ptrdiff_t extent, std::span<const Block> blocks);

// Copies the data bytes [first, first + bytes) of a buffer's elements to or from packed memory. Host
// memory only.
void pack(const Layout& layout, const void* buffer, Bytes first, Bytes bytes, void* packed);
void unpack(const Layout& layout, void* buffer, Bytes first, Bytes bytes, const void* packed);

}  // namespace gantry::layout

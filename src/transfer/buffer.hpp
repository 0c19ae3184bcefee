// SPDX-License-Identifier: BSD-3-Clause
//
// A user's memory as transfers see it: what the program named (Buffer), with where it lies (Side),
// and a run of its data bytes (Piece).
#pragma once

#include "device/device.hpp"
#include "layout/layout.hpp"
#include "transport/transport.hpp"

namespace gantry::transfer {

// `count` elements of `layout` at `address` (which may be null with absolute displacements,
// MPI_BOTTOM).
struct Buffer {
    void* address = nullptr;
    std::uint64_t count = 0;
    // Outlives every operation on the buffer: predefined, or held by the request.
    const layout::Layout* layout = nullptr;
    Bytes bytes() const { return layout != nullptr ? count * layout->size : 0; }
    bool contiguous() const {
        return layout == nullptr || layout->contiguous() || (count == 1 && layout->one_run);
    }
    // First data byte: what must be classified. The address may be far from it (MPI_BOTTOM).
    std::byte* data() const {
        return static_cast<std::byte*>(address) + (layout != nullptr ? layout->first : 0);
    }
};

// Plain bytes.
Buffer bytes_buffer(const void* address, Bytes bytes);

// Data bytes [first, first + bytes) of a buffer.
struct Piece {
    Buffer buffer;
    device::Location location;
    Bytes first = 0, bytes = 0;
};

// One end of a transfer.
struct Side {
    Buffer buffer;
    device::Location location;
    // Managed memory is copied like device memory.
    bool on_device() const {
        return location.kind == device::MemoryKind::device ||
               location.kind == device::MemoryKind::managed;
    }
    bool contiguous() const { return buffer.contiguous(); }
    std::byte* at(Bytes offset) const { return buffer.data() + offset; }  // contiguous only
    Piece piece(Bytes first, Bytes bytes) const { return {buffer, location, first, bytes}; }
};

inline bool in_host_memory(const device::Location& location) {
    return location.kind == device::MemoryKind::host || location.kind == device::MemoryKind::pinned;
}

// A part of a user's buffer, for registering it with the network.
transport::Extent extent_of(const device::Location& location, void* address, Bytes bytes);

}  // namespace gantry::transfer

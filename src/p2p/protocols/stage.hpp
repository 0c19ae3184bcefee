// SPDX-License-Identifier: BSD-3-Clause
//
// The two ends of every protocol: moving a piece of a user's buffer to or from staging memory, by
// processor or by copy engine.
#pragma once

#include "p2p/core.hpp"

namespace gantry::p2p {

// One side's user memory, as protocols see it: contiguous bytes, or a strided host buffer that is
// packed piece by piece.
struct Side {
    Buffer buffer;
    device::Location location;
    std::byte* packed =
        nullptr;  // a strided device buffer, packed on the host: stands for the buffer
    bool on_device() const {
        return packed == nullptr && (location.kind == device::MemoryKind::device ||
                                     location.kind == device::MemoryKind::managed);
    }
    bool contiguous() const { return packed != nullptr || buffer.contiguous(); }
    std::byte* at(Bytes offset) const {
        return (packed != nullptr ? packed : buffer.data()) + offset;
    }
};

// Host sides only: copies at once.
void copy_out(const Side& side, Bytes offset, Bytes bytes, std::byte* to);
void copy_in(const Side& side, Bytes offset, Bytes bytes, const std::byte* from);

// One copy through the device.
Task<Status> device_copy(Executor& executor, Core& core, void* destination, const void* source,
                         Bytes bytes, int gpu, device::Engine engine);

// A copy inside a GPU that another process uses too: this process is its last user then.
Task<Status> copy_inside(Executor& executor, Core& core, void* destination, const void* source,
                         Bytes bytes, int gpu);

// A strided device buffer to packed host memory and back: the whole extent is copied, so that holes
// keep their bytes.
Task<Status> pack_from_device(Executor& executor, Core& core, Buffer buffer,
                              device::Location location, std::byte* packed);
Task<Status> unpack_to_device(Executor& executor, Core& core, Buffer buffer,
                              device::Location location, Bytes bytes, const std::byte* packed);

// Nothrow host memory, or the failure.
Result<std::unique_ptr<std::byte[]>> host_memory(Bytes bytes, const char* what);

}  // namespace gantry::p2p

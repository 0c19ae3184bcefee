// SPDX-License-Identifier: BSD-3-Clause
// Copies: what moves, which engine and how long, and when the call may return. All forms (1D, 2D,
// 3D, typed or not) become one Movement between two strided places.
#pragma once

#include "driver.hpp"
#include "memory.hpp"

namespace simgpu {

struct Movement {
    std::size_t width = 0, height = 1, depth = 1;
    std::size_t target_pitch = 0, target_slice = 0;
    std::size_t source_pitch = 0, source_slice = 0;

    std::size_t bytes() const { return width * height * depth; }
    std::size_t rows() const { return height * depth; }
    // Bytes from the first to behind the last one touched.
    std::size_t target_extent() const {
        return (depth - 1) * target_slice + (height - 1) * target_pitch + width;
    }
    std::size_t source_extent() const {
        return (depth - 1) * source_slice + (height - 1) * source_pitch + width;
    }
    Shape shape() const { return rows() > 1 ? Shape::strided : Shape::contiguous; }
    void apply(char* target, const char* source) const;
};

// Which side the caller said is what; a typed call with the wrong kind of pointer is an error.
enum class Side { any, device };

enum class Return { when_done, early };  // of the synchronous and asynchronous calls

struct CopyRequest {
    Address target = 0;
    Address source = 0;
    Side target_side = Side::any;
    Side source_side = Side::any;
    Movement movement;
    Return returns = Return::early;
    Nanoseconds called = 0;
    bool further = false;  // behind the first copy of the same call
};

CUresult copy(Driver& d, const CopyRequest& request, CUstream stream);

}  // namespace simgpu

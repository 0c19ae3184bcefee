// SPDX-License-Identifier: BSD-3-Clause
//
// Room in memory for what a program or a peer sizes. The containers of the standard library end the
// process when there is none (we have no exceptions), so the same memory is asked for before they
// are, and given back: MPI_ERR_NO_MEM needs the answer, not the memory.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <new>

namespace gantry {

inline Status check_room(std::uint64_t elements, Bytes bytes_each) {
    Bytes bytes = 0;
    void* memory = nullptr;
    // A new-expression could be optimised away, this call cannot.
    if (!__builtin_mul_overflow(elements, bytes_each, &bytes) && bytes <= PTRDIFF_MAX)
        memory = ::operator new(bytes, std::nothrow);
    if (memory == nullptr)
        return failure(MPI_ERR_NO_MEM, "no memory for {} times {} bytes", elements, bytes_each);
    ::operator delete(memory);
    return success();
}

}  // namespace gantry

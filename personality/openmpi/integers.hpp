// SPDX-License-Identifier: BSD-3-Clause
//
// Handles as integers, for Fortran and MPI_x_toint: the standard's value of a predefined one, of others
// 4096 plus the number of the object's address.
#pragma once

#include "common/numbers.hpp"
#include "theirs.hpp"

namespace gantry::personality {

inline constexpr std::uintptr_t kFirstObject = 4096;

template <class Handle>
int integer_of(Handle theirs) {
    const Handle ours = to<Handle>(theirs);
    const auto value = reinterpret_cast<std::uintptr_t>(ours);
    return static_cast<int>(value < kFirstObject ? value : kFirstObject + numbers::number(ours));
}

template <class Handle>
Handle handle_of(int integer) {
    const auto value = static_cast<std::uintptr_t>(integer);
    if (integer >= static_cast<int>(kFirstObject))
        return static_cast<Handle>(
            numbers::address(static_cast<std::uint32_t>(value - kFirstObject)));
    return integer > 0 && value < kPredefinedValues ? from(reinterpret_cast<Handle>(value))
                                                    : nullptr;
}

}  // namespace gantry::personality

// SPDX-License-Identifier: BSD-3-Clause
//
// Handles as integers, for Fortran and MPI_x_toint: they are integers, but for files, which have numbers
// as other ABIs' handles do (common/numbers.hpp); 0 is MPI_FILE_NULL.
#pragma once

#include "theirs.hpp"

namespace gantry::personality {

template <class Handle>
int integer_of(Their<Handle> theirs) {
    if constexpr (std::is_same_v<Handle, MPI_File>)
        return theirs == nullptr ? 0 : static_cast<int>(numbers::number(theirs)) + 1;
    else
        return theirs;
}

template <class Handle>
Their<Handle> handle_of(int integer) {
    if constexpr (std::is_same_v<Handle, MPI_File>)
        return integer <= 0 ? nullptr
                            : static_cast<MPI_File>(
                                  numbers::address(static_cast<std::uint32_t>(integer - 1)));
    else
        return integer;
}

}  // namespace gantry::personality

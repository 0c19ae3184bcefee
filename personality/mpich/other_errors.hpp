// SPDX-License-Identifier: BSD-3-Clause
//
// Error codes that are no predefined class: those that a program adds count up from above each
// ABI's MPI_ERR_LASTCODE.
#pragma once

#include <mpi.h>

namespace gantry::personality::theirs {

inline constexpr int kLastCode = 0x3fffffff;

constexpr int other_error_to(int value) {
    return value >= kLastCode ? MPI_ERR_LASTCODE + (value - kLastCode) : -1;
}
constexpr int other_error_from(int value) {
    if (value < 0) return value;
    return value >= MPI_ERR_LASTCODE ? kLastCode + (value - MPI_ERR_LASTCODE)
                                     : 15;  // MPI_ERR_OTHER
}

}  // namespace gantry::personality::theirs

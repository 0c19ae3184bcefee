// SPDX-License-Identifier: BSD-3-Clause
//
// Cases that run with GANTRY_CHECK=1.
#pragma once

#include "refused.hpp"

#include <cstdlib>

namespace mpi_tests {

inline void start_checked() {
    setenv("GANTRY_CHECK", "1", 1);
    start_mpi();
    return_errors(MPI_COMM_WORLD);
    return_errors(MPI_COMM_SELF);
}

}  // namespace mpi_tests

// SPDX-License-Identifier: BSD-3-Clause
//
// Questions to a communicator that cannot fail.
#pragma once

#include "test.hpp"

namespace mpi_tests {

inline int rank_in(MPI_Comm comm) {
    int found = -1;
    OK(MPI_Comm_rank(comm, &found));
    return found;
}
inline int size_of(MPI_Comm comm) {
    int found = -1;
    OK(MPI_Comm_size(comm, &found));
    return found;
}

}  // namespace mpi_tests

// SPDX-License-Identifier: BSD-3-Clause
//
// Every collective operation in each of its three forms, on one communicator: of one group, or an
// inter-communicator, where each rank meets the other group.
#pragma once

#include <mpi.h>

#include <vector>

namespace mpi_tests {

enum class Form { blocking, nonblocking, persistent };

struct Meeting {
    MPI_Comm comm;
    bool inter;
    // By their world ranks: my own group, and those whose data I get.
    std::vector<int> mine, peers;
};
// The meeting of all members of a communicator of one group.
Meeting meeting_of(MPI_Comm comm);

void every_collective(const Meeting& meeting, Form form);

}  // namespace mpi_tests

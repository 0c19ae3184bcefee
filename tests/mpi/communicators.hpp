// SPDX-License-Identifier: BSD-3-Clause
//
// What communicators and groups say of themselves.
#pragma once

#include "test.hpp"

#include <cstddef>
#include <numeric>
#include <vector>

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
inline int compare(MPI_Comm a, MPI_Comm b) {
    int found = -1;
    OK(MPI_Comm_compare(a, b, &found));
    return found;
}
inline std::vector<int> world_ranks(MPI_Group group) {
    int count = -1;
    OK(MPI_Group_size(group, &count));
    std::vector<int> own(static_cast<std::size_t>(count)), in_world(own.size());
    std::iota(own.begin(), own.end(), 0);
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(group, count, own.data(), world, in_world.data()));
    OK(MPI_Group_free(&world));
    return in_world;
}

}  // namespace mpi_tests

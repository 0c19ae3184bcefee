// SPDX-License-Identifier: BSD-3-Clause
//
// Inter-communicators for tests: two groups of MPI_COMM_WORLD, and what every such communicator
// must carry.
#pragma once

#include "collective_forms.hpp"
#include "communicators.hpp"
#include "test.hpp"

#include <numeric>
#include <vector>

namespace mpi_tests {

inline int remote_size(MPI_Comm comm) {
    int found = -1;
    OK(MPI_Comm_remote_size(comm, &found));
    return found;
}
inline std::vector<int> mine_in(MPI_Comm comm) {
    MPI_Group group;
    OK(MPI_Comm_group(comm, &group));
    std::vector<int> found = world_ranks(group);
    OK(MPI_Group_free(&group));
    return found;
}
inline std::vector<int> theirs_in(MPI_Comm comm) {
    MPI_Group group;
    OK(MPI_Comm_remote_group(comm, &group));
    std::vector<int> found = world_ranks(group);
    OK(MPI_Group_free(&group));
    return found;
}
inline Meeting inter_meeting(MPI_Comm comm) {
    return {comm, true, mine_in(comm), theirs_in(comm)};
}
inline int sum(const std::vector<int>& values) {
    return std::accumulate(values.begin(), values.end(), 0);
}

// The processes below `border` and the others; the leaders are the last of each, and ranks run
// backwards in the second group.
inline MPI_Comm between(int border) {
    const bool low = rank() < border;
    MPI_Comm half, inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, low, low ? rank() : -rank(), &half));
    OK(MPI_Intercomm_create(half, size_of(half) - 1, MPI_COMM_WORLD, low ? border : border - 1, 31,
                            &inter));
    OK(MPI_Comm_free(&half));
    return inter;
}
inline bool is_low(int border) {
    return rank() < border;
}

// Everybody's world rank crosses by messages and by a collective.
inline void expect_it_carries(MPI_Comm comm) {
    const std::vector<int> theirs = theirs_in(comm);
    int world = rank(), total = -1;
    OK(MPI_Allreduce(&world, &total, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(total, sum(theirs));
    std::vector<MPI_Request> requests;
    for (std::size_t to = 0; to < theirs.size(); ++to) {
        requests.push_back(MPI_REQUEST_NULL);
        OK(MPI_Isend(&world, 1, MPI_INT, static_cast<int>(to), 4, comm, &requests.back()));
    }
    for (std::size_t from = 0; from < theirs.size(); ++from) {
        int heard = -1;
        MPI_Status status;
        OK(MPI_Recv(&heard, 1, MPI_INT, static_cast<int>(from), 4, comm, &status));
        CHECK_EQ(heard, theirs[from]);
        CHECK_EQ(status.MPI_SOURCE, static_cast<int>(from));
    }
    OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    OK(MPI_Barrier(comm));
}

}  // namespace mpi_tests

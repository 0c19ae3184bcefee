// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of spawned and connected jobs share.
#pragma once

#include "test.hpp"

#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>

namespace mpi_tests {

// A case of this program that another one spawns: no test of its own.
#define MPI_CASE_CHILD(name, ranks) MPI_CASE(name, ranks)

inline std::string this_program() {
    char path[PATH_MAX] = {};
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    return {path, static_cast<std::size_t>(length > 0 ? length : 0)};
}

// Spawns that case with so many ranks, by all of `comm`.
inline MPI_Comm spawn_case(const char* child, int ranks, MPI_Comm comm = MPI_COMM_WORLD) {
    std::string name = child;
    char* arguments[] = {name.data(), nullptr};
    MPI_Comm inter = MPI_COMM_NULL;
    int codes[16];
    OK(MPI_Comm_spawn(this_program().c_str(), arguments, ranks, MPI_INFO_NULL, 0, comm, &inter,
                      codes));
    for (int i = 0; i < ranks; ++i)
        CHECK_EQ(codes[i], MPI_SUCCESS);
    return inter;
}

inline MPI_Comm parent() {
    MPI_Comm found = MPI_COMM_NULL;
    OK(MPI_Comm_get_parent(&found));
    return found;
}

}  // namespace mpi_tests

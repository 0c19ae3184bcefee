// SPDX-License-Identifier: BSD-3-Clause
//
// What cases of ranks that die share: who dies and when, as survivors_test.py says, and what the others are
// told.
#pragma once

#include "spawning.hpp"
#include "test.hpp"

#include <mpi-ext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace mpi_tests {

// Of this rank of the job, from the environment: "1,3".
inline bool is_doomed() {
    const char* victims = std::getenv("MPI_TESTS_DIE");
    const std::string listed = std::string(",") + (victims != nullptr ? victims : "") + ",";
    return listed.find("," + std::to_string(rank()) + ",") != std::string::npos;
}

inline int doomed() {
    const char* victims = std::getenv("MPI_TESTS_DIE");
    if (victims == nullptr) return 0;
    return 1 + static_cast<int>(std::count(victims, victims + std::strlen(victims), ','));
}

// At some moment of whatever the rank does then.
inline void die_later() {
    const char* after = std::getenv("MPI_TESTS_AFTER_US");
    const long microseconds = after != nullptr ? std::atol(after) : 0;
    std::thread([microseconds] {
        usleep(static_cast<useconds_t>(microseconds));
        raise(SIGKILL);
    }).detach();
}

// Rank `victim` dies when all others have come here.
inline void die_when_told(int victim) {
    if (rank() != victim) {
        OK(MPI_Send(nullptr, 0, MPI_INT, victim, 77, MPI_COMM_WORLD));
        return;
    }
    for (int other = 0; other < size(); ++other)
        if (other != victim)
            OK(MPI_Recv(nullptr, 0, MPI_INT, other, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    raise(SIGKILL);
}

inline int class_of(int code) {
    return code == MPI_SUCCESS ? MPI_SUCCESS : error_class(code);
}

inline bool is_of_faults(int code) {
    const int its_class = class_of(code);
    return its_class == MPIX_ERR_PROC_FAILED || its_class == MPIX_ERR_REVOKED;
}

// What a call may end with while ranks die; another error is told with its sentence.
inline bool is_fine_or_of_faults(int code) {
    if (code == MPI_SUCCESS || is_of_faults(code)) return true;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    std::fprintf(stderr, "rank %d: %s\n", rank(), text);
    return false;
}

}  // namespace mpi_tests

// SPDX-License-Identifier: BSD-3-Clause
//
// Cases that run with GANTRY_CHECK=1.
#pragma once

#include "refused.hpp"

#include <cstdlib>
#include <string>
#include <vector>

namespace mpi_tests {

inline void start_checked() {
    setenv("GANTRY_CHECK", "1", 1);
    start_mpi();
    return_errors(MPI_COMM_WORLD);
    return_errors(MPI_COMM_SELF);
}

// Calls a collective operation in its three forms, and `judge` with the code that each ends with.
#define IN_EVERY_FORM(judge, operation, nonblocking_operation, ...)    \
    do {                                                               \
        MPI_Request made = MPI_REQUEST_NULL;                           \
        judge(MPI_##operation(__VA_ARGS__));                           \
        OK(MPI_##nonblocking_operation(__VA_ARGS__, &made));           \
        judge(MPI_Wait(&made, MPI_STATUS_IGNORE));                     \
        OK(MPI_##operation##_init(__VA_ARGS__, MPI_INFO_NULL, &made)); \
        OK(MPI_Start(&made));                                          \
        judge(MPI_Wait(&made, MPI_STATUS_IGNORE));                     \
        OK(MPI_Request_free(&made));                                   \
    } while (false)

// What such a call has to end with, and what it has not written.
struct Refusal {
    const char* what;
    int error_class;
    std::string sentence;
    const std::vector<int>* untouched = nullptr;  // all -1

    void operator()(int code) const {
        expect(code, error_class, {sentence.c_str()}, what);
        about(what);
        if (untouched != nullptr) CHECK(*untouched == std::vector<int>(untouched->size(), -1));
        about("");
    }
};

// Or that it succeeds, with these numbers written.
struct Written {
    const char* what;
    std::vector<int>& got;
    std::vector<int> wanted;

    void operator()(int code) const {
        about(what);
        OK(code);
        CHECK(got == wanted);
        about("");
        got.assign(got.size(), -1);
    }
};

}  // namespace mpi_tests

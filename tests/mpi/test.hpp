// SPDX-License-Identifier: BSD-3-Clause
//
// A case is a function that every rank runs between MPI_Init and MPI_Finalize. A failed CHECK says
// where, on which rank, and how to run it again; the case goes on, so that the other ranks are not
// left waiting, and the program's exit code is 1.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <string>
#include <type_traits>

namespace mpi_tests {

struct Case {
    const char* name;
    int ranks;
    void (*run)();
    bool starts_mpi;  // the case calls MPI_Init itself
};
bool add(Case test_case);

int rank();
int size();
// MPI_Init for a case with its own beginning; gpu.hpp and environment variables are its own
// business before.
void start_mpi();
// The same by MPI_Init_thread with this level, which must be given.
void start_mpi(int thread_level);
// Says on standard error what a failed check in a loop was about; empty: nothing.
void about(const std::string& what);
// Fails the case: prints, and makes the exit code 1.
void fail(const char* file, int line, const std::string& what);
// The same for checks. What they say is put together here, once: compiled into every check, of which there
// are thousands, it took most of the time to build the tests.
[[gnu::cold]] void fail_check(const char* file, int line, const char* condition);
[[gnu::cold]] void fail_check(const char* file, int line, const char* text, long long actual,
                              const char* expected_text, long long expected);
bool has_failed();
// Each rank sees one GPU, that of its number (TESTS_ONE_GPU_EACH).
bool one_gpu_each();
// The case cannot run here (no second GPU, say): exit code 77, printed with the reason.
[[noreturn]] void skip(const std::string& why);

#define MPI_CASE(name, ranks)                                 \
    static void case_##name();                                \
    [[maybe_unused]] static const bool added_##name =         \
        ::mpi_tests::add({#name, ranks, case_##name, false}); \
    static void case_##name()
#define MPI_CASE_OWN_INIT(name, ranks)                       \
    static void case_##name();                               \
    [[maybe_unused]] static const bool added_##name =        \
        ::mpi_tests::add({#name, ranks, case_##name, true}); \
    static void case_##name()
// A case that must not end well: no test of its own, endings_test.py runs it and looks at how the
// job ends.
#define MPI_CASE_ENDING(name, ranks) MPI_CASE(name, ranks)

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) ::mpi_tests::fail_check(__FILE__, __LINE__, #condition); \
    } while (false)
#define CHECK_EQ(actual, expected)                                                               \
    do {                                                                                         \
        const auto actual_value = (actual);                                                      \
        const auto expected_value = static_cast<std::decay_t<decltype(actual_value)>>(expected); \
        if (!(actual_value == expected_value))                                                   \
            ::mpi_tests::fail_check(__FILE__, __LINE__, #actual,                                 \
                                    static_cast<long long>(actual_value), #expected,             \
                                    static_cast<long long>(expected_value));                     \
    } while (false)
// An MPI call that must succeed.
#define OK(call) CHECK_EQ((call), MPI_SUCCESS)

// The class of a code that an MPI call returned.
int error_class(int code);

}  // namespace mpi_tests

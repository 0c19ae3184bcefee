// SPDX-License-Identifier: BSD-3-Clause
//
// Derived datatypes as a program makes them and asks about them (MPI 5.0 section 5.1).
#include "test.hpp"

#include <sys/resource.h>

#include <cstdio>

using namespace mpi_tests;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // the shadow has no place under a limit
#else
constexpr bool kSanitized = false;
#endif

MPI_CASE(types_beyond_memory_are_an_error, 1) {
    if (kSanitized) skip("a sanitizer takes any amount of address space");
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    long pages = 0;
    std::FILE* statm = std::fopen("/proc/self/statm", "r");
    CHECK_EQ(std::fscanf(statm, "%ld", &pages), 1);
    std::fclose(statm);
    rlimit all{};
    CHECK_EQ(getrlimit(RLIMIT_AS, &all), 0);
    // Room for 64 MiB more.
    const rlimit few{static_cast<rlim_t>(pages) * 4096 + (64u << 20), all.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_AS, &few), 0);
    constexpr int kMany = 100'000'000;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    CHECK_EQ(error_class(MPI_Type_contiguous(kMany, MPI_DOUBLE_INT, &type)), MPI_ERR_NO_MEM);
    CHECK_EQ(error_class(MPI_Type_vector(kMany, 1, 2, MPI_INT, &type)), MPI_ERR_NO_MEM);
    CHECK(type == MPI_DATATYPE_NULL);
    CHECK_EQ(setrlimit(RLIMIT_AS, &all), 0);
    // What has one block costs nothing, however long it is.
    OK(MPI_Type_contiguous(kMany, MPI_DOUBLE, &type));
    OK(MPI_Type_free(&type));
}

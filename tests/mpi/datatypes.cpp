// SPDX-License-Identifier: BSD-3-Clause
//
// Derived datatypes as a program makes them and asks about them (MPI 5.0 section 5.1).
#include "refused.hpp"
#include "test.hpp"
#include "tests/sanitized.hpp"

#include <limits>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdio>
#include <vector>

using namespace mpi_tests;

namespace {

// What MPI_Type_get_envelope_c says of a type, and that the int forms refuse one of large counts.
// Frees the type.
struct Envelope {
    explicit Envelope(MPI_Datatype type) {
        OK(MPI_Type_get_envelope_c(type, &integers, &addresses, &large_counts, &types, &combiner));
        int fewer[3], of = -1;
        const int code = MPI_Type_get_envelope(type, &fewer[0], &fewer[1], &fewer[2], &of);
        CHECK_EQ(error_class(code), large_counts > 0 ? MPI_ERR_TYPE : MPI_SUCCESS);
        contents(type);
        OK(MPI_Type_free(&type));
    }
    void contents(MPI_Datatype type) {
        its_integers.resize(static_cast<std::size_t>(integers));
        its_addresses.resize(static_cast<std::size_t>(addresses));
        its_large_counts.resize(static_cast<std::size_t>(large_counts));
        std::vector<MPI_Datatype> of(static_cast<std::size_t>(types));
        OK(MPI_Type_get_contents_c(type, integers, addresses, large_counts, types,
                                   its_integers.data(), its_addresses.data(),
                                   its_large_counts.data(), of.data()));
        for (MPI_Datatype inner : of)
            CHECK(inner == MPI_INT || inner == MPI_CHAR);
        if (large_counts == 0) return;
        int integer = 0;
        MPI_Aint address = 0;
        CHECK_EQ(error_class(MPI_Type_get_contents(type, 1, 1, 1, &integer, &address, of.data())),
                 MPI_ERR_TYPE);
    }
    MPI_Count integers = -1, addresses = -1, large_counts = -1, types = -1;
    int combiner = -1;
    std::vector<int> its_integers;
    std::vector<MPI_Aint> its_addresses;
    std::vector<MPI_Count> its_large_counts;
};

using Ints = std::vector<int>;
using Larges = std::vector<MPI_Count>;

}  // namespace

MPI_CASE(large_constructors_tell_large_counts, 1) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    MPI_Datatype type;
    const auto expect = [&type](int combiner, const Ints& integers, const Larges& large_counts) {
        const Envelope told(type);
        CHECK_EQ(told.combiner, combiner);
        CHECK_EQ(told.addresses, 0);
        CHECK(told.its_integers == integers);
        CHECK(told.its_large_counts == large_counts);
    };
    const MPI_Count two[] = {2, 3}, sizes[] = {4, 5}, starts[] = {1, 0};
    const MPI_Datatype types[] = {MPI_INT, MPI_CHAR};
    OK(MPI_Type_contiguous_c(3, MPI_INT, &type));
    expect(MPI_COMBINER_CONTIGUOUS, {}, {3});
    OK(MPI_Type_vector_c(3, 2, 5, MPI_INT, &type));
    expect(MPI_COMBINER_VECTOR, {}, {3, 2, 5});
    OK(MPI_Type_create_hvector_c(3, 2, 64, MPI_INT, &type));
    expect(MPI_COMBINER_HVECTOR, {}, {3, 2, 64});
    OK(MPI_Type_indexed_c(2, two, sizes, MPI_INT, &type));
    expect(MPI_COMBINER_INDEXED, {}, {2, 2, 3, 4, 5});
    OK(MPI_Type_create_hindexed_c(2, two, sizes, MPI_INT, &type));
    expect(MPI_COMBINER_HINDEXED, {}, {2, 2, 3, 4, 5});
    OK(MPI_Type_create_indexed_block_c(2, 7, sizes, MPI_INT, &type));
    expect(MPI_COMBINER_INDEXED_BLOCK, {}, {2, 7, 4, 5});
    OK(MPI_Type_create_hindexed_block_c(2, 7, sizes, MPI_INT, &type));
    expect(MPI_COMBINER_HINDEXED_BLOCK, {}, {2, 7, 4, 5});
    OK(MPI_Type_create_struct_c(2, two, sizes, types, &type));
    expect(MPI_COMBINER_STRUCT, {}, {2, 2, 3, 4, 5});
    OK(MPI_Type_create_resized_c(MPI_INT, -4, 16, &type));
    expect(MPI_COMBINER_RESIZED, {}, {-4, 16});
    OK(MPI_Type_create_subarray_c(2, sizes, two, starts, MPI_ORDER_C, MPI_INT, &type));
    expect(MPI_COMBINER_SUBARRAY, {2, MPI_ORDER_C}, {4, 5, 2, 3, 1, 0});
    const int distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
    const int arguments[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 1};
    OK(MPI_Type_create_darray_c(2, 1, 2, sizes, distributions, arguments, grid, MPI_ORDER_FORTRAN,
                                MPI_INT, &type));
    expect(MPI_COMBINER_DARRAY,
           {2, 1, 2, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE, 2, MPI_DISTRIBUTE_DFLT_DARG, 2, 1,
            MPI_ORDER_FORTRAN},
           {4, 5});
}

MPI_CASE(int_constructors_tell_ints_and_addresses, 1) {
    MPI_Datatype type;
    OK(MPI_Type_create_resized(MPI_INT, -4, 16, &type));
    const Envelope resized(type);
    CHECK(resized.its_addresses == (std::vector<MPI_Aint>{-4, 16}));
    CHECK_EQ(resized.large_counts, 0);
    OK(MPI_Type_vector(3, 2, 5, MPI_INT, &type));
    const Envelope vector(type);
    CHECK(vector.its_integers == (Ints{3, 2, 5}));
    CHECK_EQ(vector.large_counts, 0);
}

// Lists of no pattern take memory by the block; the program's own lists exist before the limit.
MPI_CASE(types_beyond_memory_are_an_error, 1) {
    if (gantry::kSanitized) skip("a sanitizer takes any amount of address space");
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    constexpr int kMany = 4'000'000;
    std::vector<int> places(kMany), lengths(kMany, 1);
    for (int i = 0; i < kMany; ++i)
        places[static_cast<std::size_t>(i)] = 4 * i + i * 7 % 3;
    long pages = 0;
    std::FILE* statm = std::fopen("/proc/self/statm", "r");
    CHECK_EQ(std::fscanf(statm, "%ld", &pages), 1);
    std::fclose(statm);
    rlimit all{};
    CHECK_EQ(getrlimit(RLIMIT_AS, &all), 0);
    // Room for 64 MiB more.
    const rlimit few{static_cast<rlim_t>(pages) * 4096 + (64u << 20), all.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_AS, &few), 0);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    CHECK_EQ(
        error_class(MPI_Type_create_indexed_block(kMany, 1, places.data(), MPI_DOUBLE_INT, &type)),
        MPI_ERR_NO_MEM);
    CHECK_EQ(error_class(MPI_Type_indexed(kMany, lengths.data(), places.data(), MPI_INT, &type)),
             MPI_ERR_NO_MEM);
    CHECK(type == MPI_DATATYPE_NULL);
    CHECK_EQ(setrlimit(RLIMIT_AS, &all), 0);
}

// Lists of them would not fit into any memory.
MPI_CASE(regular_types_of_billions_of_blocks, 1) {
    constexpr MPI_Count kMany = 3'000'000'000;
    MPI_Datatype column, type;
    OK(MPI_Type_vector_c(kMany, 1, 2, MPI_BYTE, &column));
    OK(MPI_Type_commit(&column));
    MPI_Count lower = -1, extent = -1, size = -1;
    OK(MPI_Type_size_c(column, &size));
    CHECK_EQ(size, kMany);
    OK(MPI_Type_get_true_extent_c(column, &lower, &extent));
    CHECK_EQ(extent, 2 * kMany - 1);
    const auto expect_size = [&type, &size](MPI_Count expected) {
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_size_c(type, &size));
        CHECK_EQ(size, expected);
        OK(MPI_Type_free(&type));
    };
    OK(MPI_Type_create_hvector_c(1'000'000, 1, 7'000'000'000, column, &type));
    expect_size(1'000'000 * kMany);
    OK(MPI_Type_create_resized_c(column, -1, 3, &type));
    expect_size(kMany);
    OK(MPI_Type_dup(column, &type));
    expect_size(kMany);
    const MPI_Count sizes[] = {2000, 2000, 2000}, inside[] = {1998, 1998, 1998},
                    first[] = {1, 1, 1};
    OK(MPI_Type_create_subarray_c(3, sizes, inside, first, MPI_ORDER_FORTRAN, MPI_DOUBLE, &type));
    expect_size(MPI_Count{1998} * 1998 * 1998 * 8);
    // A part whose end no MPI_Count holds lies in no array.
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    const MPI_Count last = std::numeric_limits<MPI_Count>::max();
    const MPI_Count whole[] = {last}, part[] = {last}, begin[] = {1};
    expect(MPI_Type_create_subarray_c(1, whole, part, begin, MPI_ORDER_C, MPI_BYTE, &type),
           MPI_ERR_ARG, {"does not lie in an array"}, "a part beyond the array");
    const int distributed[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK},
              arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {-2, -2};
    expect(MPI_Type_create_darray_c(4, 0, 2, sizes, distributed, arguments, grid, MPI_ORDER_C,
                                    MPI_BYTE, &type),
           MPI_ERR_ARG, {"dimension 0", "-2 processes"}, "a grid of fewer than no processes");

    // A short message into the begin of it.
    const auto bytes = static_cast<std::size_t>(2 * kMany);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    auto* at = static_cast<char*>(memory);
    std::vector<char> sent(1000);
    for (std::size_t i = 0; i < sent.size(); ++i)
        sent[i] = static_cast<char>(i * 7 + 1);
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(at, 1, column, 0, 0, MPI_COMM_SELF, &request));
    OK(MPI_Send(sent.data(), 1000, MPI_CHAR, 0, 0, MPI_COMM_SELF));
    OK(MPI_Wait(&request, &status));
    MPI_Count elements = 0;
    OK(MPI_Get_elements_c(&status, column, &elements));
    CHECK_EQ(elements, 1000);
    for (std::size_t i = 0; i < sent.size(); ++i) {
        CHECK_EQ(at[2 * i], sent[i]);
        CHECK_EQ(at[2 * i + 1], 0);
    }
    CHECK_EQ(munmap(memory, bytes), 0);
    OK(MPI_Type_free(&column));
}

MPI_CASE(types_whose_size_no_count_can_say_are_refused, 1) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    MPI_Datatype type = MPI_DATATYPE_NULL;
    CHECK_EQ(error_class(MPI_Type_contiguous_c(MPI_Count{1} << 61, MPI_DOUBLE, &type)),
             MPI_ERR_COUNT);
    CHECK_EQ(error_class(MPI_Type_vector_c(2, 1, MPI_Count{1} << 61, MPI_DOUBLE, &type)),
             MPI_ERR_COUNT);
    CHECK(type == MPI_DATATYPE_NULL);
}

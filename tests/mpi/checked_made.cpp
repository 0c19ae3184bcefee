// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_CHECK=1: calls that make communicators and windows, and assertions of windows.
#include "checked.hpp"

using namespace mpi_tests;

MPI_CASE_OWN_INIT(checked_communicators_are_made_alike, 4) {
    start_checked();
    MPI_Comm made = MPI_COMM_NULL;
    const bool odd = rank() == 1;
    const int one[] = {4, 1}, other[] = {1, 4}, periods[] = {0, 0};
    expect(MPI_Cart_create(MPI_COMM_WORLD, 2, odd ? other : one, periods, 0, &made), MPI_ERR_ARG,
           {"rank 1", "dims and periods {1, 4, 0, 0}", "rank 0", "{4, 1, 0, 0}"}, "other dims");
    CHECK(made == MPI_COMM_NULL);
    expect(odd ? MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made) : MPI_Comm_dup(MPI_COMM_WORLD, &made),
           MPI_ERR_OTHER, {"rank 1 calls MPI_Comm_split where rank 0 calls MPI_Comm_dup"},
           "split and dup");
    CHECK(made == MPI_COMM_NULL);
    const int index[] = {1, 2}, edges[] = {1, 0}, no_edges[] = {0, 0};
    expect(MPI_Graph_create(MPI_COMM_WORLD, 2, odd ? no_edges : index, edges, 0, &made),
           MPI_ERR_ARG, {"rank 1 calls MPI_Graph_create", "index and edges {1, 2, 1, 0}"},
           "another graph");
    // Those that agree, also where some ranks get none.
    const int few[] = {3};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, few, periods, 0, &made));
    CHECK((made == MPI_COMM_NULL) == (rank() == 3));
    if (made != MPI_COMM_NULL) {
        const int none[] = {0};
        MPI_Comm alone = MPI_COMM_NULL;
        OK(MPI_Cart_sub(made, none, &alone));
        OK(MPI_Comm_free(&alone));
        OK(MPI_Comm_free(&made));
    }
    MPI_Group all, two;
    const int members[] = {0, 2};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 2, members, &two));
    OK(MPI_Comm_create(MPI_COMM_WORLD, two, &made));
    CHECK((made != MPI_COMM_NULL) == (rank() % 2 == 0));
    if (made != MPI_COMM_NULL) OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&two));
    OK(MPI_Group_free(&all));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
    OK(MPI_Comm_free(&made));
    MPI_Request request;
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &made, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&made));
    const int me = rank(), next = (rank() + 1) % 4, degree = 1;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &degree, &next, MPI_UNWEIGHTED, MPI_INFO_NULL,
                             0, &made));
    OK(MPI_Comm_free(&made));
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_windows_keep_what_they_promise, 2) {
    start_checked();
    MPI_Info info;
    MPI_Win win = MPI_WIN_NULL;
    int* memory = nullptr;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "same_size", "true"));
    expect(MPI_Win_allocate(rank() == 0 ? 64 : 128, 1, info, MPI_COMM_WORLD, &memory, &win),
           MPI_ERR_ARG, {"same_size", "64 bytes", "128 bytes"}, "other sizes");
    OK(MPI_Win_allocate(64, 1, info, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Info_free(&info));
    const int number = 5;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&number, 1, MPI_INT, 1 - rank(), 0, 1, MPI_INT, win));
    const int ended = MPI_Win_fence(rank() == 0 ? MPI_MODE_NOPRECEDE : 0, win);
    if (rank() == 0)
        expect(ended, MPI_ERR_ASSERT, {"MPI_MODE_NOPRECEDE"}, "a false assertion");
    else
        OK(ended);
    CHECK_EQ(memory[0], 5);
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments that are wrong only together with others: in place on the wrong side, types in lists,
// places for results that are null although something is to be written there.
#include "refused.hpp"
#include "test.hpp"

using namespace mpi_tests;

MPI_CASE(in_place_on_the_wrong_side_is_refused, 2) {
    return_errors(MPI_COMM_WORLD);
    int numbers[4] = {}, more[4] = {};
    const int counts[2] = {1, 1}, places[2] = {0, 1}, offsets[2] = {0, 4};
    const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    const MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    const auto refused = [](int code, const char* argument, const char* what) {
        expect(code, MPI_ERR_BUFFER, {argument, "MPI_IN_PLACE"}, what);
    };
    refused(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, comm), "buffer", "Bcast");
    refused(MPI_Allreduce(numbers, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm), "recvbuf",
            "Allreduce");
    refused(MPI_Iallreduce(numbers, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm, &request), "recvbuf",
            "Iallreduce");
    refused(MPI_Allreduce_init(numbers, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                               &request),
            "recvbuf", "Allreduce_init");
    refused(MPI_Exscan(MPI_IN_PLACE, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm), "recvbuf", "Exscan");
    refused(MPI_Reduce_scatter(numbers, MPI_IN_PLACE, counts, MPI_INT, MPI_SUM, comm), "recvbuf",
            "Reduce_scatter");
    refused(MPI_Allgather(numbers, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm), "recvbuf",
            "Allgather");
    refused(MPI_Allgatherv(numbers, 1, MPI_INT, MPI_IN_PLACE, counts, places, MPI_INT, comm),
            "recvbuf", "Allgatherv");
    refused(
        MPI_Alltoallw(numbers, counts, offsets, types, MPI_IN_PLACE, counts, offsets, types, comm),
        "recvbuf", "Alltoallw");
    // Rooted operations take it at the root only.
    if (rank() == 1) {
        refused(MPI_Reduce(MPI_IN_PLACE, numbers, 1, MPI_INT, MPI_SUM, 0, comm), "sendbuf",
                "Reduce elsewhere than at the root");
        refused(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, numbers, 1, MPI_INT, 0, comm), "sendbuf",
                "Gather elsewhere");
        refused(MPI_Igatherv(MPI_IN_PLACE, 1, MPI_INT, numbers, counts, places, MPI_INT, 0, comm,
                             &request),
                "sendbuf", "Igatherv elsewhere");
        refused(MPI_Scatter(numbers, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm), "recvbuf",
                "Scatter elsewhere");
    } else {
        refused(MPI_Reduce(numbers, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, 0, comm), "recvbuf",
                "Reduce");
        refused(MPI_Gatherv(numbers, 1, MPI_INT, MPI_IN_PLACE, counts, places, MPI_INT, 0, comm),
                "recvbuf", "Gatherv");
        refused(MPI_Scatter(MPI_IN_PLACE, 1, MPI_INT, numbers, 1, MPI_INT, 0, comm), "sendbuf",
                "Scatter");
        refused(MPI_Scatterv(MPI_IN_PLACE, counts, places, MPI_INT, numbers, 1, MPI_INT, 0, comm),
                "sendbuf", "Scatterv");
    }
    // Where nothing is sent or received the same number may be the address of nothing, as the empty
    // arrays of some languages have it.
    void* nowhere = MPI_IN_PLACE;
    const int none[2] = {0, 0};
    OK(MPI_Bcast(nowhere, 0, MPI_BYTE, 0, comm));
    OK(MPI_Gather(rank() == 0 ? static_cast<void*>(numbers) : nowhere, 0, MPI_BYTE, nowhere, 0,
                  MPI_BYTE, 0, comm));
    OK(MPI_Alltoallw(numbers, none, offsets, types, nowhere, none, offsets, types, comm));
    // And the right side still is one.
    numbers[0] = rank() + 1;
    OK(MPI_Exscan(MPI_IN_PLACE, numbers, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(numbers[0], 1);
    more[0] = 5;
    OK(MPI_Scatter(more, 1, MPI_INT, rank() == 0 ? MPI_IN_PLACE : numbers, 1, MPI_INT, 0, comm));
    expect_alive(comm);
}

MPI_CASE(uncommitted_types_are_refused_in_lists_too, 2) {
    return_errors(MPI_COMM_WORLD);
    MPI_Datatype raw;
    OK(MPI_Type_contiguous(1, MPI_INT, &raw));
    int out[2] = {}, in[2] = {};
    const int counts[2] = {1, 1}, offsets[2] = {0, 4};
    const MPI_Datatype good[2] = {MPI_INT, MPI_INT}, bad[2] = {MPI_INT, raw};
    MPI_Request request = MPI_REQUEST_NULL;
    expect(MPI_Alltoallw(out, counts, offsets, bad, in, counts, offsets, good, MPI_COMM_WORLD),
           MPI_ERR_TYPE, {"sendtypes[1]", "MPI_Type_commit"}, "Alltoallw, out");
    expect(MPI_Ialltoallw(out, counts, offsets, good, in, counts, offsets, bad, MPI_COMM_WORLD,
                          &request),
           MPI_ERR_TYPE, {"recvtypes[1]", "MPI_Type_commit"}, "Ialltoallw, in");
    expect(MPI_Alltoallw_init(out, counts, offsets, good, in, counts, offsets, bad, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &request),
           MPI_ERR_TYPE, {"recvtypes[1]", "MPI_Type_commit"}, "Alltoallw_init, in");
    OK(MPI_Type_free(&raw));
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(null_places_for_text_and_indices_are_refused, 1) {
    return_errors(MPI_COMM_SELF);
    int length = 10, flag = 0, completed = 0, value = 0;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "value"));
    expect(MPI_Info_get_string(info, "key", &length, nullptr, &flag), MPI_ERR_ARG, {"value"},
           "no place for the value");
    length = 0;
    OK(MPI_Info_get_string(info, "key", &length, nullptr, &flag));
    CHECK_EQ(length, 6);
    OK(MPI_Info_free(&info));
    MPI_Session session;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    length = 10;
    expect(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, nullptr), MPI_ERR_ARG,
           {"pset_name"}, "no place for the name");
    length = 0;
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, nullptr));
    CHECK_EQ(length, 12);
    OK(MPI_Session_finalize(&session));
    MPI_Request request;
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request));
    for (auto* function : {MPI_Testsome, MPI_Waitsome})
        expect(function(1, &request, &completed, nullptr, MPI_STATUSES_IGNORE), MPI_ERR_ARG,
               {"array_of_indices"}, "no place for indices");
    expect(MPI_Request_get_status_some(1, &request, &completed, nullptr, MPI_STATUSES_IGNORE),
           MPI_ERR_ARG, {"array_of_indices"}, "no place for indices of those that stay");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

MPI_CASE(an_unknown_level_of_thread_support_is_refused, 1) {
    // Judged before anything else, so that a running MPI can be asked.
    return_errors(MPI_COMM_SELF);
    int provided = -1;
    for (int required : {-5, 5, 5000})
        expect(MPI_Init_thread(nullptr, nullptr, required, &provided), MPI_ERR_ARG,
               {"required", "MPI_THREAD_"}, "Init_thread");
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Mistakes of a program under MPI_ERRORS_RETURN and its own handlers: the right class, a sentence
// that names the argument, and nothing lost: the next correct call works. (tests/abi tries every
// argument of every function; here are the ones that need a peer or a live message.)
#include "refused.hpp"
#include "test.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

struct Heard {
    int times = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    int error_class = -1;
} heard;

void listen(MPI_Comm* comm, int* code, ...) {
    ++heard.times;
    heard.comm = *comm;
    heard.error_class = error_class(*code);
}

}  // namespace

MPI_CASE(bad_arguments_of_a_send_are_named, 2) {
    return_errors(MPI_COMM_WORLD);
    int value = 0;
    expect(MPI_Send(&value, 1, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
           {"MPI_Send", "dest", "2", "between 0 and 1"}, "rank 2 of 2");
    expect(MPI_Send(&value, 1, MPI_INT, -7, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
           {"dest", "-7", "MPI_PROC_NULL"}, "rank -7");
    expect(MPI_Send(&value, 1, MPI_INT, 1, -5, MPI_COMM_WORLD), MPI_ERR_TAG,
           {"tag", "-5", "MPI_TAG_UB"}, "tag -5");
    expect(MPI_Send(&value, 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG, {"tag"},
           "any tag");
    expect(MPI_Send(&value, -1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
           {"count", "-1", "negative"}, "count -1");
    expect(MPI_Send(nullptr, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER, {"buf", "null"},
           "null buffer");
    expect(MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           {"buf", "MPI_IN_PLACE"}, "in place");
    expect(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 1, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
           {"datatype", "MPI_DATATYPE_NULL"}, "null type");
    expect(MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_NULL), MPI_ERR_COMM,
           {"comm", "MPI_COMM_NULL"}, "null communicator");
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    expect(MPI_Send(&value, 1, pair, 1, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
           {"datatype", "MPI_Type_commit"}, "type not committed");
    OK(MPI_Type_free(&pair));
    // A null buffer is fine when there is nothing in it.
    OK(MPI_Sendrecv(nullptr, 0, MPI_INT, 1 - rank(), 3, nullptr, 0, MPI_INT, 1 - rank(), 3,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    expect_alive(MPI_COMM_WORLD);
}

// As other libraries take it: with a count of 0 the datatype is of nothing.
MPI_CASE(without_data_there_may_be_no_datatype, 2) {
    return_errors(MPI_COMM_WORLD);
    const int peer = 1 - rank();
    MPI_Request requests[2];
    OK(MPI_Irecv(nullptr, 0, MPI_DATATYPE_NULL, peer, 0, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(nullptr, 0, MPI_DATATYPE_NULL, peer, 0, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Sendrecv(nullptr, 0, MPI_DATATYPE_NULL, peer, 1, nullptr, 0, MPI_DATATYPE_NULL, peer, 1,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Bcast(nullptr, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Allreduce(nullptr, nullptr, 0, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Allgather(nullptr, 0, MPI_DATATYPE_NULL, nullptr, 0, MPI_DATATYPE_NULL, MPI_COMM_WORLD));
    int position = 0;
    OK(MPI_Pack(nullptr, 0, MPI_DATATYPE_NULL, nullptr, 0, &position, MPI_COMM_WORLD));
    CHECK_EQ(position, 0);
    expect(MPI_Bcast(&position, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
           {"datatype", "MPI_DATATYPE_NULL"}, "one of no type");
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(bad_arguments_of_a_receive_are_named, 2) {
    return_errors(MPI_COMM_WORLD);
    int value = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    expect(MPI_Recv(&value, 1, MPI_INT, 5, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_RANK,
           {"source", "5"}, "rank 5");
    expect(MPI_Irecv(&value, -3, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_COUNT,
           {"count", "-3"}, "count -3");
    expect(MPI_Irecv(nullptr, 3, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_BUFFER, {"buf"},
           "null buffer");
    expect(MPI_Irecv(&value, 1, MPI_INT, 0, -9, MPI_COMM_WORLD, &request), MPI_ERR_TAG,
           {"tag", "-9", "MPI_ANY_TAG"}, "tag -9");
    expect(MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, nullptr), MPI_ERR_ARG, {"request"},
           "no place for the request");
    CHECK(request == MPI_REQUEST_NULL);
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(freed_and_garbage_handles_are_errors_not_crashes, 2) {
    return_errors(MPI_COMM_WORLD);
    return_errors(MPI_COMM_SELF);
    int value = 0, size = 0;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Comm stale = comm;
    OK(MPI_Comm_free(&comm));
    CHECK(comm == MPI_COMM_NULL);
    expect(MPI_Send(&value, 1, MPI_INT, 0, 0, stale), MPI_ERR_COMM, {"comm", "freed"},
           "freed communicator");
    expect(MPI_Comm_free(&stale), MPI_ERR_COMM, {"comm"}, "freed twice");
    MPI_Datatype type;
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    MPI_Datatype stale_type = type;
    OK(MPI_Type_free(&type));
    expect(MPI_Type_size(stale_type, &size), MPI_ERR_TYPE, {"datatype", "freed"}, "freed type");
    int on_the_stack = 0;
    for (std::uintptr_t garbage :
         {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{0xfff}, std::uintptr_t{0x1000},
          reinterpret_cast<std::uintptr_t>(&on_the_stack), ~std::uintptr_t{0}}) {
        expect(MPI_Comm_size(reinterpret_cast<MPI_Comm>(garbage), &size), MPI_ERR_COMM, {"comm"},
               "garbage communicator");
        expect(MPI_Type_size(reinterpret_cast<MPI_Datatype>(garbage), &size), MPI_ERR_TYPE,
               {"datatype"}, "garbage type");
        expect(MPI_Group_size(reinterpret_cast<MPI_Group>(garbage), &size), MPI_ERR_GROUP,
               {"group"}, "garbage group");
        MPI_Request request = reinterpret_cast<MPI_Request>(garbage);
        expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, {"request"},
               "garbage request");
    }
    // A request that is done is gone; a copy of its handle is stale.
    MPI_Request request;
    OK(MPI_Isend(&value, 1, MPI_INT, 1 - rank(), 1, MPI_COMM_WORLD, &request));
    MPI_Request copy = request;
    OK(MPI_Recv(&value, 1, MPI_INT, 1 - rank(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect(MPI_Wait(&copy, MPI_STATUS_IGNORE), MPI_ERR_REQUEST, {"request"}, "stale request");
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(a_freed_communicator_still_delivers_what_was_under_way, 2) {
    constexpr int kCount = 300000;
    std::vector<int> out(kCount, rank() + 1), in(kCount, 0);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Request requests[2];
    OK(MPI_Irecv(in.data(), kCount, MPI_INT, 1 - rank(), 0, comm, &requests[0]));
    OK(MPI_Isend(out.data(), kCount, MPI_INT, 1 - rank(), 0, comm, &requests[1]));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(in == std::vector<int>(kCount, 2 - rank()));
}

MPI_CASE(truncation_says_both_lengths, 2) {
    return_errors(MPI_COMM_WORLD);
    for (int count : {10, 50000}) {  // eager and rendezvous
        std::vector<int> data(static_cast<std::size_t>(count), 1);
        if (rank() == 0) {
            OK(MPI_Send(data.data(), count, MPI_INT, 1, 0, MPI_COMM_WORLD));
        } else {
            MPI_Status status;
            expect(MPI_Recv(data.data(), count / 2, MPI_INT, 0, 0, MPI_COMM_WORLD, &status),
                   MPI_ERR_TRUNCATE,
                   {std::to_string(count * 4).c_str(), std::to_string(count / 2 * 4).c_str()},
                   "truncated");
            CHECK_EQ(status.MPI_SOURCE, 0);
        }
    }
    // In an array of requests the status says which one.
    int small = 0, big[2] = {1, 2};
    if (rank() == 0) {
        OK(MPI_Send(big, 2, MPI_INT, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Send(big, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
    } else {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        OK(MPI_Irecv(&small, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Irecv(&big[1], 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &requests[1]));
        CHECK_EQ(error_class(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
        CHECK_EQ(error_class(statuses[0].MPI_ERROR), MPI_ERR_TRUNCATE);
        if (requests[1] == MPI_REQUEST_NULL) {
            CHECK_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
            CHECK_EQ(big[1], 1);
        } else {
            CHECK_EQ(statuses[1].MPI_ERROR, MPI_ERR_PENDING);
            OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        }
    }
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(a_programs_own_handler_hears_of_it_and_the_code_comes_back, 2) {
    MPI_Errhandler listener;
    OK(MPI_Comm_create_errhandler(listen, &listener));
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, listener));
    OK(MPI_Errhandler_free(&listener));  // the communicator keeps it
    int data[4] = {};
    // The argument of a call, a failure that Wait finds, and one in a large-count form.
    CHECK_EQ(error_class(MPI_Send(data, 1, MPI_INT, 77, 0, comm)), MPI_ERR_RANK);
    CHECK_EQ(heard.times, 1);
    CHECK(heard.comm == comm);
    CHECK_EQ(heard.error_class, MPI_ERR_RANK);
    MPI_Request requests[2];
    OK(MPI_Irecv(data, 1, MPI_INT, 1 - rank(), 0, comm, &requests[0]));
    OK(MPI_Isend(data, 4, MPI_INT, 1 - rank(), 0, comm, &requests[1]));
    CHECK_EQ(error_class(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
    CHECK_EQ(heard.times, 2);
    CHECK(heard.comm == comm);
    CHECK_EQ(heard.error_class, MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    CHECK_EQ(error_class(MPI_Recv_c(data, -1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE)),
             MPI_ERR_COUNT);
    CHECK_EQ(heard.times, 3);
    // A duplicate inherits it.
    MPI_Comm copy;
    OK(MPI_Comm_dup(comm, &copy));
    CHECK_EQ(error_class(MPI_Send(data, 1, MPI_INT, 77, 0, copy)), MPI_ERR_RANK);
    CHECK_EQ(heard.times, 4);
    CHECK(heard.comm == copy);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&comm));
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(wrong_collective_arguments_fail_before_anything_is_sent, 2) {
    return_errors(MPI_COMM_WORLD);
    int in = 1, out = 0;
    expect(MPI_Bcast(&in, 1, MPI_INT, 2, MPI_COMM_WORLD), MPI_ERR_ROOT, {"root", "2"},
           "root 2 of 2");
    expect(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP, {"op"},
           "null operation");
    expect(MPI_Allreduce(&in, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           {"MPI_IN_PLACE"}, "aliased buffers");
    expect(MPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP,
           {"MPI_BAND"}, "bits of a float");
    OK(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(out, 2);
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(a_buffer_that_is_read_and_written_by_one_collective_is_refused, 2) {
    return_errors(MPI_COMM_WORLD);
    int numbers[4] = {rank(), 0, 0, 0};
    expect(MPI_Allgather(numbers, 1, MPI_INT, numbers, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           {"MPI_IN_PLACE"}, "Allgather");
    expect(MPI_Alltoall(numbers, 1, MPI_INT, numbers, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER,
           {"MPI_IN_PLACE"}, "Alltoall");
    expect(MPI_Reduce_local(numbers, numbers, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER, {"inoutbuf"},
           "Reduce_local");
    const int shares[2] = {1, 1};
    expect(MPI_Reduce_scatter(numbers, numbers, shares, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
           MPI_ERR_BUFFER, {"MPI_IN_PLACE"}, "Reduce_scatter");
    MPI_Request request = MPI_REQUEST_NULL;
    expect(
        MPI_Ireduce_scatter(numbers, numbers, shares, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request),
        MPI_ERR_BUFFER, {"MPI_IN_PLACE"}, "Ireduce_scatter");
    // A rank without a share is not written to.
    const int share_of_rank_1[2] = {0, 1};
    if (rank() == 0)
        OK(MPI_Reduce_scatter(numbers, numbers, share_of_rank_1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    else
        OK(MPI_Reduce_scatter(MPI_IN_PLACE, numbers, share_of_rank_1, MPI_INT, MPI_SUM,
                              MPI_COMM_WORLD));
    // Nothing is read or written: one address may serve for both.
    OK(MPI_Alltoall(numbers, 0, MPI_INT, numbers, 0, MPI_INT, MPI_COMM_WORLD));
    const int counts[2] = {1, 1}, beside[2] = {1, 2};
    OK(MPI_Allgatherv(numbers, 1, MPI_INT, numbers, counts, beside, MPI_INT, MPI_COMM_WORLD));
    CHECK_EQ(numbers[1], 0);
    CHECK_EQ(numbers[2], 1);
    expect_alive(MPI_COMM_WORLD);
}

MPI_CASE(a_null_buffer_of_listed_blocks_is_refused, 2) {
    return_errors(MPI_COMM_WORLD);
    int numbers[4] = {};
    const int counts[2] = {1, 1}, none[2] = {0, 0}, places[2] = {0, 1}, offsets[2] = {0, 4};
    const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    const MPI_Comm comm = MPI_COMM_WORLD;
    const auto refused = [](int code, const char* argument, const char* what) {
        expect(code, MPI_ERR_BUFFER, {argument, "null"}, what);
    };
    refused(MPI_Allgatherv(numbers, 1, MPI_INT, nullptr, counts, places, MPI_INT, comm), "recvbuf",
            "Allgatherv");
    refused(MPI_Alltoallv(nullptr, counts, places, MPI_INT, numbers, counts, places, MPI_INT, comm),
            "sendbuf", "Alltoallv, out");
    refused(MPI_Alltoallv(numbers, counts, places, MPI_INT, nullptr, counts, places, MPI_INT, comm),
            "recvbuf", "Alltoallv, in");
    refused(MPI_Alltoallw(nullptr, counts, offsets, types, numbers, counts, offsets, types, comm),
            "sendbuf", "Alltoallw");
    refused(MPI_Reduce_scatter(nullptr, numbers, counts, MPI_INT, MPI_SUM, comm), "sendbuf",
            "Reduce_scatter, out");
    refused(MPI_Reduce_scatter(numbers, nullptr, counts, MPI_INT, MPI_SUM, comm), "recvbuf",
            "Reduce_scatter, in");
    if (rank() == 0) {
        refused(MPI_Gatherv(numbers, 1, MPI_INT, nullptr, counts, places, MPI_INT, 0, comm),
                "recvbuf", "Gatherv");
        refused(MPI_Scatterv(nullptr, counts, places, MPI_INT, numbers, 1, MPI_INT, 0, comm),
                "sendbuf", "Scatterv");
    }
    // Nothing is in it: null is fine. So it is where only the root has blocks.
    OK(MPI_Alltoallv(nullptr, none, places, MPI_INT, nullptr, none, places, MPI_INT, comm));
    OK(MPI_Alltoallw(nullptr, none, offsets, types, nullptr, none, offsets, types, comm));
    OK(MPI_Gatherv(numbers, 1, MPI_INT, rank() == 0 ? numbers + 1 : nullptr, counts, places,
                   MPI_INT, 0, comm));
    expect_alive(comm);
}

MPI_CASE(a_broadcast_that_fits_one_rank_badly_still_reaches_the_others, 4) {
    return_errors(MPI_COMM_WORLD);
    // Rank 2 passes the message on to rank 3 although it has room for a part only.
    std::vector<int> numbers(100, rank() == 0 ? 7 : 0);
    const int code = MPI_Bcast(numbers.data(), rank() == 2 ? 10 : 100, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank() == 0 || rank() == 1) {
        CHECK_EQ(code, MPI_SUCCESS);
        CHECK_EQ(numbers[99], 7);
    }
    if (rank() == 2) expect(code, MPI_ERR_TRUNCATE, {"400"}, "Bcast");
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

MPI_CASE_OWN_INIT(errors_before_and_after_are_heard_by_the_first_handler, 1) {
    // What is legal before MPI_Init is; the rest would be fatal (tests/cli sees that it ends the
    // job).
    int flag = -1, version = 0, subversion = 0;
    OK(MPI_Initialized(&flag));
    CHECK_EQ(flag, 0);
    OK(MPI_Get_version(&version, &subversion));
    CHECK_EQ(version, 5);
    MPI_Errhandler mine;
    OK(MPI_Comm_create_errhandler(listen, &mine));
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "key", "value"));
    int number = -1;
    OK(MPI_Add_error_class(&number));
    OK(MPI_Add_error_string(number, "the reactor is open"));
    start_mpi();
    CHECK(text_of(number) == "the reactor is open");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine));
    CHECK_EQ(error_class(MPI_Comm_call_errhandler(MPI_COMM_WORLD, number)), MPI_SUCCESS);
    CHECK_EQ(heard.times, 1);
    OK(MPI_Info_free(&info));
    OK(MPI_Errhandler_free(&mine));
    MPI_Finalize();
    OK(MPI_Finalized(&flag));
    CHECK_EQ(flag, 1);
}

// --- what tests/mpi/endings_test.py lets fail: these do not end well ----------------------------------

static struct {
    int times = 0, code = 0;
    MPI_File file = nullptr;
} of_files;
static void listen_to_files(MPI_File* file, int* code, ...) {
    ++of_files.times;
    of_files.code = *code;
    of_files.file = *file;
}

// A program that looks whether a file is there goes on.
MPI_CASE(failures_of_files_are_returned_by_default, 1) {
    MPI_File file = MPI_FILE_NULL;
    CHECK(MPI_File_open(MPI_COMM_WORLD, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) !=
          MPI_SUCCESS);
    expect_failure(MPI_File_delete("/nowhere/at/all", MPI_INFO_NULL), "/nowhere/at/all");
    CHECK(MPI_File_open(MPI_COMM_NULL, "x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
    MPI_Offset size = 0;
    CHECK(MPI_File_get_size(MPI_FILE_NULL, &size) != MPI_SUCCESS);

    MPI_Errhandler handler = MPI_ERRHANDLER_NULL, mine;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(listen_to_files, &mine));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &handler));
    CHECK(handler == mine);
    OK(MPI_Errhandler_free(&handler));
    CHECK(MPI_File_open(MPI_COMM_WORLD, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) !=
          MPI_SUCCESS);
    CHECK_EQ(of_files.times, 1);
    CHECK(of_files.file == MPI_FILE_NULL);
    OK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_NO_SPACE));
    CHECK_EQ(of_files.times, 2);
    CHECK_EQ(of_files.code, MPI_ERR_NO_SPACE);
    // One of another kind does not serve files, and is told so to the handler of files.
    MPI_Errhandler of_communicators;
    OK(MPI_Comm_create_errhandler(listen, &of_communicators));
    expect(MPI_File_set_errhandler(MPI_FILE_NULL, of_communicators), MPI_ERR_ARG,
           {"MPI_File_create_errhandler"}, "an error handler of communicators");
    CHECK_EQ(of_files.times, 3);
    OK(MPI_Errhandler_free(&of_communicators));
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
}

// A collective call that one rank is refused for its arguments is as if it had not been made, wherever
// it is refused: the rank makes it again, and the others' call ends with it.
MPI_CASE(errors_in_arguments_of_collectives_leave_ranks_together, 2) {
    return_errors(MPI_COMM_WORLD);
    int numbers[8] = {}, counts[2] = {2, 2}, displacements[2] = {0, 2}, sum[2] = {};
    if (rank() == 0) {
        expect(MPI_Gatherv(numbers, 2, MPI_INT, numbers, counts, displacements, MPI_INT, 0,
                           MPI_COMM_WORLD),
               MPI_ERR_BUFFER, {"MPI_IN_PLACE"}, "the root's block in MPI_Gatherv");
        expect(MPI_Scatterv(numbers, counts, displacements, MPI_INT, numbers, 2, MPI_INT, 0,
                            MPI_COMM_WORLD),
               MPI_ERR_BUFFER, {"MPI_IN_PLACE"}, "the root's block in MPI_Scatterv");
        MPI_Request request = MPI_REQUEST_NULL;
        expect(MPI_Iallgatherv(numbers, 2, MPI_INT, numbers, counts, displacements, MPI_INT,
                               MPI_COMM_WORLD, &request),
               MPI_ERR_BUFFER, {"MPI_IN_PLACE"}, "the rank's block in MPI_Iallgatherv");
        expect(MPI_Allreduce(numbers, numbers, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER,
               {"MPI_IN_PLACE"}, "MPI_Allreduce");
    }
    // Refused at one rank by the entry point, at the other by what follows it.
    expect(MPI_Allgather(numbers + rank(), 1, MPI_INT, numbers, 1, MPI_INT, MPI_COMM_WORLD),
           MPI_ERR_BUFFER, {"MPI_IN_PLACE"}, "the rank's block in MPI_Allgather");
    const int mine[2] = {1, rank()};
    OK(MPI_Allreduce(mine, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum[0] == 2 && sum[1] == 1);
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Iallreduce(mine, sum, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum[0] == 1 && sum[1] == 1);
}

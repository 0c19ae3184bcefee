/* SPDX-License-Identifier: BSD-3-Clause */
/* What differs between the standard ABI and another MPI's, as a program of that other MPI sees it: handles, constants,
 * statuses, markers, arrays of handles, callbacks, error codes. Compiled with the header of the other MPI (CI: with one
 * that tests/personality/header.py writes), it says the same on that MPI and on Gantry's personality of it. Two ranks. */
#include "program.h"

int failures = 0, rank = 0, size = 0;

void expect(int good, const char* what, int line) {
    if (good) return;
    printf("rank %d, line %d: wrong: %s\n", rank, line, what);
    ++failures;
}

enum { kMany = 300 }; /* requests: more than a call keeps on its stack */

static void statuses(void) {
    int out = 40 + rank, in = -1, count = -1, flag = -1;
    MPI_Status status;
    MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank, 7, &in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                 MPI_COMM_WORLD, &status);
    EXPECT(in == 41 - rank && status.MPI_SOURCE == 1 - rank && status.MPI_TAG == 7);
    EXPECT(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 1);
    EXPECT(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag == 0);

    /* MPI_ERROR of a single status stays. */
    status.MPI_ERROR = 4711;
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG &&
           status.MPI_ERROR == 4711);
    EXPECT(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 0);
    MPI_Send(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);

    /* What MPI_Status_set_* writes is what is read. */
    MPI_Status_set_elements_x(&status, MPI_BYTE, (MPI_Count)5 << 33);
    MPI_Status_set_cancelled(&status, 1);
    MPI_Count many = 0;
    EXPECT(MPI_Get_elements_x(&status, MPI_BYTE, &many) == MPI_SUCCESS && many == (MPI_Count)5
                                                                                      << 33);
    EXPECT(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag == 1);
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_ERROR == 4711);

#if MPI_VERSION >= 5
    /* These say what the field holds, whatever that is. */
    int held = 0;
    status.MPI_ERROR = 333;
    MPI_Status_get_error(&status, &held);
    EXPECT(held == 333);
    MPI_Status_set_source(&status, -77);
    EXPECT(status.MPI_SOURCE == -77);
#endif

    /* A probe that finds nothing leaves the status alone. */
    status.MPI_SOURCE = 99;
    MPI_Iprobe(MPI_ANY_SOURCE, 1234, MPI_COMM_SELF, &flag, &status);
    EXPECT(flag == 0 && status.MPI_SOURCE == 99);

    MPI_Message message;
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status);
    EXPECT(message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(&in, 0, MPI_INT, &message, MPI_STATUS_IGNORE);
    EXPECT(message == MPI_MESSAGE_NULL);
}

static void arrays_of_requests(void) {
    static int out[kMany], in[kMany], order[kMany];
    static MPI_Request requests[2 * kMany];
    static MPI_Status found[2 * kMany];
    for (int number = 1; number <= kMany; number = number == 1 ? 7 : kMany + (number == kMany)) {
        for (int i = 0; i < number; ++i) {
            out[i] = rank * 1000 + i, in[i] = -1;
            MPI_Irecv(&in[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = 0; i < number; ++i)
            MPI_Isend(&out[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &requests[number + i]);
        MPI_Waitall(2 * number, requests, found);
        for (int i = 0; i < number; ++i) {
            EXPECT(in[i] == (1 - rank) * 1000 + i && found[i].MPI_SOURCE == 1 - rank &&
                   found[i].MPI_TAG == i);
            EXPECT(requests[i] == MPI_REQUEST_NULL && requests[number + i] == MPI_REQUEST_NULL);
        }
    }
    /* One by one, and some. */
    for (int i = 0; i < 5; ++i) {
        MPI_Irecv(&in[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Send(&out[i], 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD);
    }
    int index = -1, taken = 0, done = 0;
    MPI_Waitany(5, requests, &index, found);
    EXPECT(index >= 0 && index < 5 && requests[index] == MPI_REQUEST_NULL &&
           found[0].MPI_TAG == index);
    while (taken < 4 && MPI_Waitsome(5, requests, &done, order, found) == MPI_SUCCESS &&
           done != MPI_UNDEFINED)
        for (int i = 0; i < done; ++i, ++taken)
            EXPECT(found[i].MPI_TAG == order[i]);
    EXPECT(taken == 4);
    MPI_Waitany(5, requests, &index, found);
    EXPECT(index == MPI_UNDEFINED && found[0].MPI_SOURCE == MPI_ANY_SOURCE &&
           found[0].MPI_TAG == MPI_ANY_TAG);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);

    /* Persistent requests keep their handle. */
    MPI_Request kept;
    MPI_Recv_init(&in[0], 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, &kept);
    const MPI_Request before = kept;
    for (int i = 0; i < 3; ++i) {
        MPI_Start(&kept);
        MPI_Send(&out[0], 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD);
        MPI_Wait(&kept, MPI_STATUS_IGNORE);
        EXPECT(kept == before);
    }
    MPI_Request_free(&kept);
    EXPECT(kept == MPI_REQUEST_NULL);
}

static void add(void* in, void* inout, int* length, MPI_Datatype* type) {
    if (*type != MPI_INT) failures += 100;
    for (int i = 0; i < *length; ++i)
        ((int*)inout)[i] += ((int*)in)[i];
}
static MPI_Datatype pair;
static void add_pairs(void* in, void* inout, int* length, MPI_Datatype* type) {
    if (*type != pair) failures += 100;
    for (int i = 0; i < 2 * *length; ++i)
        ((int*)inout)[i] += ((int*)in)[i];
}

static void collectives(void) {
    int value[2] = {rank + 1, 10}, result[2] = {0, 0};
    MPI_Allreduce(value, result, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(result[0] == 3 && result[1] == 20);
    MPI_Allreduce(MPI_IN_PLACE, value, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    EXPECT(value[0] == 2 && value[1] == 10);
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(&rank, result, 1, MPI_INT, op, MPI_COMM_WORLD);
    EXPECT(result[0] == 1);
    MPI_Op_free(&op);
    EXPECT(op == MPI_OP_NULL);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(add_pairs, 1, &op);
    MPI_Allreduce(value, result, 1, pair, op, MPI_COMM_WORLD);
    EXPECT(result[0] == 4 && result[1] == 20);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    EXPECT(pair == MPI_DATATYPE_NULL);
    struct {
        double value;
        int place;
    } least = {rank == 0 ? 2.0 : 1.0, rank}, all;
    MPI_Allreduce(&least, &all, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    EXPECT(all.place == 1 && all.value == 1.0);

    int one[2] = {1, 1}, offsets[2] = {0, 4}, out[2] = {rank * 10, rank * 10 + 1}, in[2] = {-1, -1};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Alltoallw(out, one, offsets, types, in, one, offsets, types, MPI_COMM_WORLD);
    EXPECT(in[0] == rank && in[1] == 10 + rank);
    MPI_Request request;
    MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, in, one, offsets, types, MPI_COMM_WORLD,
                   &request);
    types[0] = types[1] = MPI_DATATYPE_NULL;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(in[rank] == rank * 11 && in[1 - rank] == (rank == 0 ? 1 : 10));
}

int main(int argc, char** argv) {
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    EXPECT(provided >= MPI_THREAD_SERIALIZED && provided <= MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size == 2);
    int major = 0, minor = 0;
    MPI_Get_version(&major, &minor);
    EXPECT(major == MPI_VERSION && minor == MPI_SUBVERSION);
    statuses();
    arrays_of_requests();
    collectives();
    attributes();
    errors();
    requests_of_the_program();
    datatypes();
    groups_and_topologies();
    information();
    int all = 0;
    MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    if (rank == 0) printf("%s on: %.20s\n", all == 0 ? "all right" : "wrong", version);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}

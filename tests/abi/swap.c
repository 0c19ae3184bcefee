/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of the standard ABI, compiled once and run on more than one MPI library
 * (tests/abi/swap). It uses what differs between the old ABIs: handles as constants, statuses by
 * layout, predefined attributes, callbacks that get handles, large counts. Prints the same on every
 * library. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0, rank = 0, size = 0;

static void expect(const char* what, int good) {
    if (good) return;
    printf("rank %d: wrong: %s\n", rank, what);
    ++failures;
}

/* The handle that arrives here must be the constant the program knows. */
static void add_twice(void* in, void* inout, int* length, MPI_Datatype* type) {
    if (*type != MPI_INT) MPI_Abort(MPI_COMM_WORLD, 9);
    for (int i = 0; i < *length; ++i)
        ((int*)inout)[i] += ((int*)in)[i];
}

static int copies = 0;
static int copy_attribute(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
    (void)comm, (void)key, (void)extra;
    ++copies;
    *(void**)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

/* Tables of handles at compile time: they are constants in this ABI. */
static const struct {
    MPI_Datatype type;
    int bytes;
} types[] = {
    {MPI_CHAR, 1}, {MPI_INT, 4}, {MPI_DOUBLE, 8}, {MPI_INT64_T, 8}, {MPI_C_DOUBLE_COMPLEX, 16}};

static void messages(void) {
    const int peer = 1 - rank;
    for (int count = 1; count <= 1000000; count *= 10) {
        int* out = malloc(sizeof(int) * (size_t)count);
        int* in = malloc(sizeof(int) * (size_t)count);
        for (int i = 0; i < count; ++i)
            out[i] = rank * 7 + i;
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Irecv(in, count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, count, MPI_INT, peer, count, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        int got = -1;
        MPI_Get_count(&statuses[0], MPI_INT, &got);
        expect("the status",
               statuses[0].MPI_SOURCE == peer && statuses[0].MPI_TAG == count && got == count);
        expect("the data", in[0] == peer * 7 && in[count - 1] == peer * 7 + count - 1);
        expect("the requests", requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
        MPI_Sendrecv_c(out, (MPI_Count)count, MPI_INT, peer, 1, in, (MPI_Count)count, MPI_INT, peer,
                       1, MPI_COMM_WORLD, &statuses[0]);
        MPI_Count many = -1;
        MPI_Get_count_c(&statuses[0], MPI_INT, &many);
        expect("the large count", many == count);
        free(out);
        free(in);
    }
}

static void handles(void) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i) {
        int bytes = 0;
        MPI_Type_size(types[i].type, &bytes);
        expect("the size of a type", bytes == types[i].bytes);
    }
    MPI_Comm comm;
    int key = MPI_KEYVAL_INVALID, value = 5, flag = 0, result = -1, *found = NULL;
    MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_get_attr(comm, key, &found, &flag);
    expect("the attribute of a duplicate", flag && found == &value && copies == 1);
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    expect("a comparison", result == MPI_CONGRUENT);
    expect("handle to integer and back", MPI_Comm_fromint(MPI_Comm_toint(comm)) == comm);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag);
    expect("MPI_TAG_UB", flag && *found >= 32767);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
}

static void collectives(void) {
    int mine[3] = {rank, 2 * rank, 1}, sum[3] = {-1, -1, -1};
    MPI_Op op;
    MPI_Op_create(add_twice, 1, &op);
    MPI_Allreduce(mine, sum, 3, MPI_INT, op, MPI_COMM_WORLD);
    expect("an operation of the program", sum[0] == 1 && sum[1] == 2 && sum[2] == 2);
    MPI_Op_free(&op);
    MPI_Allreduce(MPI_IN_PLACE, mine, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    expect("MPI_MAX in place", mine[0] == 1 && mine[1] == 2 && mine[2] == 1);
    char text[16] = "";
    if (rank == 1) strcpy(text, "from rank 1");
    MPI_Bcast(text, sizeof text, MPI_CHAR, 1, MPI_COMM_WORLD);
    expect("a broadcast", strcmp(text, "from rank 1") == 0);
}

static void errors(void) {
    int value = 0, error_class = -1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Send(&value, 1, MPI_INT, 55, 0, MPI_COMM_WORLD), &error_class);
    expect("the class of a bad rank", error_class == MPI_ERR_RANK);
    MPI_Error_class(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), &error_class);
    expect("the class of a bad count", error_class == MPI_ERR_COUNT);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
    int length = 0, total = -1;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(library, &length);
    if (size != 2) {
        if (rank == 0) printf("needs 2 ranks, has %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    messages();
    handles();
    collectives();
    errors();
    MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    library[strcspn(library, "\r\n")] = '\0';
    if (rank == 0 && total == 0) printf("all right on: %s\n", library);
    MPI_Finalize();
    return total != 0;
}

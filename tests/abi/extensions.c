/* SPDX-License-Identifier: BSD-3-Clause */
/* Callbacks with a pointer of the program's own (mpi-ext.h): they get the values, the handle and that pointer. */
#include <mpi-ext.h>
#include <mpi.h>
#include <stdio.h>

static int failures = 0;

static void expect(const char* what, int good) {
    if (good) return;
    printf("wrong: %s\n", what);
    ++failures;
}

static void add(void* in, void* inout, MPI_Count length, MPI_Datatype type, void* state) {
    expect("the type", type == MPI_INT);
    for (MPI_Count i = 0; i < length; ++i)
        ((int*)inout)[i] += ((int*)in)[i] * *(int*)state;
}

static void hear_comm(MPI_Comm comm, int code, void* state) {
    expect("the communicator", comm == MPI_COMM_SELF);
    *(int*)state = code;
}
static void hear_win(MPI_Win win, int code, void* state) {
    expect("the window", win != MPI_WIN_NULL);
    *(int*)state = code;
}
static void hear_session(MPI_Session session, int code, void* state) {
    (void)session;
    *(int*)state = code;
}
static void hear_file(MPI_File file, int code, void* state) {
    (void)file;
    *(int*)state = code;
}
static void destroy(void* state) {
    (void)state;
}

int main(void) {
    int factor = 10, in[2] = {1, 2}, inout[2] = {3, 4}, heard = 0;
    MPI_Op op;
    MPI_Errhandler handler;
    MPI_Win win;
    MPI_Session session;
    MPI_Init(NULL, NULL);
    expect("making an operation", MPIX_Op_create_x(add, NULL, 1, &factor, &op) == MPI_SUCCESS);
    MPI_Reduce_local(in, inout, 2, MPI_INT, op);
    expect("the sums", inout[0] == 13 && inout[1] == 24);
    MPI_Op_free(&op);

    MPIX_Comm_create_errhandler_x(hear_comm, NULL, &heard, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Errhandler_free(&handler);
    MPI_Send(in, 1, MPI_INT, 5, 0, MPI_COMM_SELF);
    expect("a communicator's error", heard == MPI_ERR_RANK);
    expect("a null function", MPIX_Op_create_x(NULL, NULL, 1, NULL, &op) == MPI_ERR_ARG);
    expect("a destructor",
           MPIX_Op_create_x(add, destroy, 1, NULL, &op) == MPI_ERR_UNSUPPORTED_OPERATION);
    expect("a null result",
           MPIX_Comm_create_errhandler_x(hear_comm, NULL, NULL, NULL) == MPI_ERR_ARG);

    MPI_Win_create(in, sizeof in, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPIX_Win_create_errhandler_x(hear_win, NULL, &heard, &handler);
    MPI_Win_set_errhandler(win, handler);
    MPI_Errhandler_free(&handler);
    MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    expect("a window's error", heard == MPI_ERR_OTHER);
    MPI_Win_free(&win);

    MPIX_Session_create_errhandler_x(hear_session, NULL, &heard, &handler);
    MPI_Session_init(MPI_INFO_NULL, handler, &session);
    MPI_Session_call_errhandler(session, MPI_ERR_ARG);
    expect("a session's error", heard == MPI_ERR_ARG);
    MPI_Session_finalize(&session);
    MPI_Errhandler_free(&handler);

    MPIX_File_create_errhandler_x(hear_file, NULL, &heard, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    MPI_Errhandler_free(&handler);
    MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_IO);
    expect("a file's error", heard == MPI_ERR_IO);
    MPI_Finalize();
    if (failures == 0) printf("all callbacks heard their own state\n");
    return failures != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Of two ranks, what Open MPI and MPICH have beyond the standard: numbers of 16 bits, and going on on a communicator
 * that was revoked. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

static int failures;
static void expect(int good, const char* what, int line) {
    if (good) return;
    fprintf(stderr, "extensions.c:%d: not so: %s\n", line, what);
    ++failures;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

static void numbers(void) {
    int size = 0;
    EXPECT(MPI_Type_size(MPIX_C_FLOAT16, &size) == 0 && size == 2);
    const uint16_t mine[2] = {0x3c00, 0xc200}; /* 1 and -3 */
    uint16_t sum[2] = {0, 0}, most[2] = {0, 0};
    EXPECT(MPI_Allreduce(mine, sum, 2, MPIX_C_FLOAT16, MPI_SUM, MPI_COMM_WORLD) == 0);
    EXPECT(sum[0] == 0x4000 && sum[1] == 0xc600);
    EXPECT(MPI_Allreduce(mine, most, 2, MPIX_C_FLOAT16, MPI_MAX, MPI_COMM_WORLD) == 0);
    EXPECT(most[0] == 0x3c00 && most[1] == 0xc200);
}

static void revoked(int rank) {
    MPI_Comm comm, rest;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int flag = rank == 0 ? 6 : 3;
    EXPECT(MPIX_Comm_agree(comm, &flag) == 0 && flag == 2);
    MPI_Group failed;
    EXPECT(MPIX_Comm_get_failed(comm, &failed) == 0);
    int size = -1;
    EXPECT(MPI_Group_size(failed, &size) == 0 && size == 0);
    int acknowledged = -1;
    EXPECT(MPIX_Comm_ack_failed(comm, 2, &acknowledged) == 0 && acknowledged == 0);
    EXPECT(MPIX_Comm_failure_ack(comm) == 0);
    EXPECT(MPIX_Comm_failure_get_acked(comm, &failed) == 0);
    if (rank == 0) {
        EXPECT(MPIX_Comm_is_revoked(comm, &flag) == 0 && flag == 0);
        EXPECT(MPIX_Comm_revoke(comm) == 0);
    }
    int value = 0, class = 0;
    const int code =
        rank == 0 ? MPI_Barrier(comm) : MPI_Recv(&value, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    EXPECT(class == MPIX_ERR_REVOKED);
    EXPECT(MPIX_Comm_is_revoked(comm, &flag) == 0 && flag == 1);
    EXPECT(MPIX_Comm_shrink(comm, &rest) == 0);
    EXPECT(MPI_Comm_size(rest, &size) == 0 && size == 2);
    flag = 1;
    MPI_Request request;
    EXPECT(MPIX_Comm_iagree(rest, &flag, &request) == 0);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == 0 && flag == 1);
    EXPECT(MPI_Barrier(rest) == 0);
    MPI_Comm_free(&rest);
    MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    numbers();
    revoked(rank);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && failures == 0) printf("all right on: Gantry\n");
    MPI_Finalize();
    return failures != 0;
}

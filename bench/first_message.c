/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long a program waits for its first message: the time from the call of MPI_Init on rank 0
 * until a message of one byte has come back from the last rank, in milliseconds, printed by rank 0.
 * Plain MPI, so that every library can compile it; `bench/startup` runs it. What the launcher needs
 * before main() is not in this number but in the runner's "whole job". */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int main(int argc, char** argv) {
    const double begin = now();
    int rank, size;
    char byte = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) {
        fprintf(stderr, "first_message needs two ranks, not %d\n", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0) {
        MPI_Send(&byte, 1, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&byte, 1, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("first message after %.3f ms\n", now() - begin);
    } else if (rank == size - 1) {
        MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}

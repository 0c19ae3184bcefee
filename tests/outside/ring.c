/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that knows only the MPI standard: compiled with one MPI's wrapper, it runs on any. Each
 * rank passes its number on and adds up what went round. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    int rank, size, length, sum = 0, total = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &length);

    int token = rank;
    for (int step = 0; step < size; ++step) {
        MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 7, (rank + size - 1) % size, 7,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += token;
    }
    MPI_Allreduce(&sum, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const int right = token == rank && total == size * (size * (size - 1) / 2);
    printf("ring of %d %s on %.*s\n", size, right ? "closed" : "broken",
           (int)strcspn(version, " \n"), version);
    MPI_Finalize();
    return !right;
}

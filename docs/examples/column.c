/* SPDX-License-Identifier: BSD-3-Clause */
/* One column of a square field of doubles in device memory, there and back: data that is not
   contiguous (docs/user/paths.md). */
#include <cuda_runtime.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#define ROWS 4096

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    const char* local_rank = getenv("LOCAL_RANK");
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        fprintf(stderr, "there is no GPU here\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    cudaSetDevice((local_rank != NULL ? atoi(local_rank) : 0) % gpus);

    double* field;
    cudaMalloc((void**)&field, sizeof(double) * ROWS * ROWS);
    MPI_Datatype column;
    MPI_Type_vector(ROWS, 1, ROWS, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int step = 0; step < 90; ++step) {
        if (rank == 0) {
            MPI_Send(field, 1, column, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(field, 1, column, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(field, 1, column, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(field, 1, column, 0, 0, MPI_COMM_WORLD);
        }
    }
    MPI_Type_free(&column);
    cudaFree(field);
    MPI_Finalize();
    return 0;
}

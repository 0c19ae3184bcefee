/* SPDX-License-Identifier: BSD-3-Clause */
/* 8 MiB of device memory from rank 0 to rank 1, in each of 500 steps (docs/user/getting-started.md). */
#include <cuda_runtime.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#define COUNT (1024 * 1024)

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    /* A GPU for each rank of this machine, as far as there are enough. */
    const char* local_rank = getenv("LOCAL_RANK");
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        fprintf(stderr, "there is no GPU here\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    cudaSetDevice((local_rank != NULL ? atoi(local_rank) : 0) % gpus);

    double* field;
    cudaMalloc((void**)&field, COUNT * sizeof(double));
    for (int step = 0; step < 500; ++step) {
        if (rank == 0) {
            /* launch kernels that fill field ... */
            cudaDeviceSynchronize(); /* they must have finished before MPI reads it */
            MPI_Send(field, COUNT, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(field, COUNT, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            /* kernels launched from here on see the data, in any stream */
        }
    }
    cudaFree(field);
    MPI_Finalize();
    return 0;
}

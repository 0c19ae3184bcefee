/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exchange of the 26 faces, edges and corners of a block of doubles in device memory, as a program that
 * uses the CUDA runtime calls it: by MPI_Neighbor_alltoallw, and by 26 MPI_Isend and MPI_Irecv. Two ranks
 * stand along x, four along x and y; the grid is periodic, so a rank has itself for neighbor, too. Prints the
 * median of 200 exchanges, each behind a barrier, after 300 others.
 *
 *   mpicc -O2 -I$CUDA/include bench/block_faces.c -o faces -L$CUDA/lib64 -lcudart && mpiexec -n 4 ./faces */
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kWays = 26, kWarmUp = 300, kMeasured = 200 };

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

/* The cells that go that way, or the halo that what was sent that way arrives in. */
static MPI_Datatype part(int inner, const int way[3], int received) {
    int whole[3], some[3], start[3];
    for (int d = 0; d < 3; ++d) {
        whole[d] = inner + 2;
        some[d] = way[d] == 0 ? inner : 1;
        start[d] = 1;
        if (way[d] > 0) start[d] = received ? 0 : inner;
        if (way[d] < 0) start[d] = received ? inner + 1 : 1;
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(3, whole, some, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

int main(int argc, char** argv) {
    int rank, size, gpus;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || cudaSetDevice(rank % gpus) != cudaSuccess)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const int along_x = size >= 2 ? 2 : 1, along_y = size / along_x;
    const int x = rank % along_x, y = rank / along_x;
    for (int inner = 32; inner <= 256; inner *= 2) {
        const size_t bytes = sizeof(double) * (size_t)(inner + 2) * (inner + 2) * (inner + 2);
        void* block;
        if (cudaMalloc(&block, bytes) != cudaSuccess) MPI_Abort(MPI_COMM_WORLD, 1);
        int to[kWays], from[kWays], counts[kWays], n = 0;
        MPI_Aint nowhere[kWays];
        MPI_Datatype sent[kWays], received[kWays];
        for (int number = 0; number < 27; ++number) {
            const int way[3] = {number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1};
            if (number == 13) continue;
            to[n] = (x + way[0] + along_x) % along_x + along_x * ((y + way[1] + along_y) % along_y);
            from[n] =
                (x - way[0] + along_x) % along_x + along_x * ((y - way[1] + along_y) % along_y);
            counts[n] = 1;
            nowhere[n] = 0;
            sent[n] = part(inner, way, 0);
            received[n++] = part(inner, way, 1);
        }
        MPI_Comm grid;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, kWays, from, MPI_UNWEIGHTED, kWays, to,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &grid);
        for (int messages = 0; messages < 2; ++messages) {
            double us[kMeasured];
            for (int i = 0; i < kWarmUp + kMeasured; ++i) {
                MPI_Barrier(MPI_COMM_WORLD);
                const double start = MPI_Wtime();
                if (messages) {
                    MPI_Request requests[2 * kWays];
                    for (int w = 0; w < kWays; ++w)
                        MPI_Irecv(block, 1, received[w], from[w], w, grid, &requests[w]);
                    for (int w = 0; w < kWays; ++w)
                        MPI_Isend(block, 1, sent[w], to[w], w, grid, &requests[kWays + w]);
                    MPI_Waitall(2 * kWays, requests, MPI_STATUSES_IGNORE);
                } else {
                    MPI_Neighbor_alltoallw(block, counts, nowhere, sent, block, counts, nowhere,
                                           received, grid);
                }
                if (i >= kWarmUp) us[i - kWarmUp] = (MPI_Wtime() - start) * 1e6;
            }
            qsort(us, kMeasured, sizeof *us, compare);
            if (rank == 0)
                printf("%4d^3 %-24s %8.1f us\n", inner,
                       messages ? "26 MPI_Isend, MPI_Irecv" : "MPI_Neighbor_alltoallw",
                       us[kMeasured / 2]);
        }
        for (int w = 0; w < kWays; ++w) {
            MPI_Type_free(&sent[w]);
            MPI_Type_free(&received[w]);
        }
        MPI_Comm_free(&grid);
        cudaFree(block);
    }
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Pack and MPI_Unpack of parts of a block of doubles in device memory, and messages of such parts between
 * two ranks, as a program that uses the CUDA runtime calls them: a corner, edges and faces of 100^3 cells.
 * Prints medians of 500 calls, in us, after 100 others; "apart": with 100 us of other work before each call.
 *
 *   mpicc -O2 -I$CUDA/include bench/packs.c -o packs -L$CUDA/lib64 -lcudart && mpiexec -n 2 ./packs */
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSide = 102, kWarmUp = 100, kMeasured = 500, kPacked = 1 << 20 };

static struct {
    char *block, *packed;
    MPI_Datatype part;
    int rank;
} given;

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static void pack(void) {
    int position = 0;
    MPI_Pack(given.block, 1, given.part, given.packed, kPacked, &position, MPI_COMM_WORLD);
}
static void unpack(void) {
    int position = 0;
    MPI_Unpack(given.packed, kPacked, &position, given.block, 1, given.part, MPI_COMM_WORLD);
}
static void there_and_back(void) {
    for (int turn = 0; turn < 2; ++turn) {
        if (turn == given.rank)
            MPI_Send(given.block, 1, given.part, 1 - given.rank, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(given.block, 1, given.part, 1 - given.rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static double median_us(void (*call)(void), double apart) {
    double seconds[kMeasured];
    for (int i = 0; i < kWarmUp + kMeasured; ++i) {
        double begin = MPI_Wtime();
        while (MPI_Wtime() - begin < apart) {
        }
        begin = MPI_Wtime();
        call();
        if (i >= kWarmUp) seconds[i - kWarmUp] = MPI_Wtime() - begin;
    }
    qsort(seconds, kMeasured, sizeof *seconds, compare);
    return 1e6 * seconds[kMeasured / 2];
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        int cells[3];
    } parts[] = {{"corner, 1 x 8 B", {1, 1, 1}},       {"edge, 1 x 800 B", {1, 1, 100}},
                 {"edge, 100 x 8 B", {1, 100, 1}},     {"edge, 100 x 8 B, far", {100, 1, 1}},
                 {"face, 100 x 800 B", {1, 100, 100}}, {"face, 100 x 800 B, far", {100, 1, 100}},
                 {"face, 10,000 x 8 B", {100, 100, 1}}};
    int size, gpus;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &given.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const size_t bytes = sizeof(double) * kSide * kSide * kSide;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess ||
        cudaSetDevice(given.rank % gpus) != cudaSuccess ||
        cudaMalloc((void**)&given.block, bytes) != cudaSuccess ||
        cudaMalloc((void**)&given.packed, kPacked) != cudaSuccess ||
        cudaMemset(given.block, 1, bytes) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const int whole[3] = {kSide, kSide, kSide}, start[3] = {1, 1, 1};
    if (given.rank == 0)
        printf("%-24s %8s %8s %12s %16s\n", "part", "pack", "unpack", "pack, apart",
               "half round trip");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        MPI_Type_create_subarray(3, whole, parts[i].cells, start, MPI_ORDER_C, MPI_DOUBLE,
                                 &given.part);
        MPI_Type_commit(&given.part);
        const double packing = median_us(pack, 0), unpacking = median_us(unpack, 0),
                     apart = median_us(pack, 100e-6);
        const double message = size == 2 ? median_us(there_and_back, 0) / 2 : 0;
        if (given.rank == 0)
            printf("%-24s %8.2f %8.2f %12.2f %16.2f\n", parts[i].name, packing, unpacking, apart,
                   message);
        MPI_Type_free(&given.part);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}

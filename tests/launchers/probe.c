/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One program for every launcher, plain MPI; `run` compiles it with our mpicc. Its argument says
 * what it does: hello   each rank says who it is; rank 0 prints how many have ring    a number goes
 * round and every rank adds to it device  rank 0 sends 1 MiB of device memory to the last rank,
 * which looks at it (libcuda.so.1, simulated or real) abort   rank 1 calls MPI_Abort with code 7
 * while the others wait for it dead    rank 1 kills itself while the others wait for it What went
 * well ends with a line "good: ..." from one rank. */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void hello(void) {
    int* all = calloc((size_t)size, sizeof *all);
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    int right = 0;
    if (rank == 0)
        for (int i = 0; i < size; ++i)
            right += all[i] == i;
    if (rank == 0 && right == size) printf("good: %d ranks said hello\n", size);
    free(all);
}

static void ring(void) {
    long sum = 0;
    if (rank > 0) MPI_Recv(&sum, 1, MPI_LONG, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += rank + 1;
    MPI_Send(&sum, 1, MPI_LONG, (rank + 1) % size, 5, MPI_COMM_WORLD);
    if (rank > 0) return;
    MPI_Recv(&sum, 1, MPI_LONG, size - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sum == (long)size * (size + 1) / 2) printf("good: the ring brought %ld\n", sum);
}

typedef unsigned long long address;
enum { bytes = 1 << 20 };

static int device(void) {
    void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda == NULL) return printf("no libcuda.so.1: %s\n", dlerror()), 1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*retain)(void**, int) = (int (*)(void**, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
    int (*current)(void*) = (int (*)(void*))dlsym(cuda, "cuCtxSetCurrent");
    int (*allocate)(address*, size_t) = (int (*)(address*, size_t))dlsym(cuda, "cuMemAlloc_v2");
    int (*fill)(address, unsigned char, size_t) =
        (int (*)(address, unsigned char, size_t))dlsym(cuda, "cuMemsetD8_v2");
    int (*fetch)(void*, address, size_t) =
        (int (*)(void*, address, size_t))dlsym(cuda, "cuMemcpyDtoH_v2");
    int (*settle)(void) = (int (*)(void))dlsym(cuda, "cuCtxSynchronize");
    void* context = NULL;
    address memory = 0;
    if (init(0) || retain(&context, 0) || current(context) || allocate(&memory, bytes))
        return printf("no GPU\n"), 1;
    if (fill(memory, rank == 0 ? 0x5a : 0, bytes) || settle()) return printf("no memset\n"), 1;
    if (rank == 0) MPI_Send((void*)(size_t)memory, bytes, MPI_BYTE, size - 1, 6, MPI_COMM_WORLD);
    if (rank != size - 1) return 0;
    MPI_Recv((void*)(size_t)memory, bytes, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned char* host = malloc(bytes);
    if (host == NULL || fetch(host, memory, bytes)) return printf("no copy\n"), 1;
    size_t right = 0;
    for (size_t i = 0; i < bytes; ++i)
        right += host[i] == 0x5a;
    if (right == bytes) printf("good: 1 MiB of device memory arrived\n");
    free(host);
    return 0;
}

static void wait_for_rank_1(void) {
    int never;
    MPI_Recv(&never, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "hello";
    int failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(what, "hello") == 0) hello();
    if (strcmp(what, "ring") == 0) ring();
    if (strcmp(what, "device") == 0) failed = device();
    if (strcmp(what, "abort") == 0) {
        if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
        wait_for_rank_1();
    }
    if (strcmp(what, "dead") == 0) {
        if (rank == 1) raise(SIGKILL);
        wait_for_rank_1();
    }
    MPI_Finalize();
    return failed;
}

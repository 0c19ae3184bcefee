/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the first exchanges of a program cost, when memory of the other process is opened: two ranks, each on a
 * GPU of its own, MPI_Isend and MPI_Irecv both ways, as sums in microseconds over the first 1, 5, 20, 100 and
 * 400 exchanges of buffers that are kept, and of buffers that each step allocates and frees. Timed from
 * before MPI_Irecv until behind MPI_Waitall on rank 0, behind a barrier; allocation is not in it. The
 * process's very first exchange is a row of its own. `dearest` is the longest one behind the first, and which.
 *
 *   mpicc -O2 bench/first_exchanges.c -o first_exchanges -ldl && mpiexec -n 2 ./first_exchanges
 *   mpiexec -n 2 sh -c 'CUDA_VISIBLE_DEVICES=$PMI_RANK exec ./first_exchanges'      (each sees its own GPU) */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

typedef unsigned long long Address;
static int (*init)(unsigned), (*count)(int*), (*retain)(void**, int), (*use)(void*);
static int (*allocate)(Address*, size_t), (*release)(Address),
    (*fill)(Address, unsigned char, size_t);
static int (*synchronize)(void);

static void must(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "first_exchanges: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void* find(void* driver, const char* name) {
    void* function = dlsym(driver, name);
    must(function != NULL, name);
    return function;
}

static int rank;

static void start_driver(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    must(driver != NULL, "there is no libcuda.so.1");
    *(void**)&init = find(driver, "cuInit");
    *(void**)&count = find(driver, "cuDeviceGetCount");
    *(void**)&retain = find(driver, "cuDevicePrimaryCtxRetain");
    *(void**)&use = find(driver, "cuCtxSetCurrent");
    *(void**)&allocate = find(driver, "cuMemAlloc_v2");
    *(void**)&release = find(driver, "cuMemFree_v2");
    *(void**)&fill = find(driver, "cuMemsetD8_v2");
    *(void**)&synchronize = find(driver, "cuCtxSynchronize");
    int gpus = 0;
    void* context = NULL;
    must(init(0) == 0 && count(&gpus) == 0 && gpus > 0, "there is no GPU");
    must(retain(&context, rank % gpus) == 0 && use(context) == 0, "no context");
}

static Address buffer(size_t bytes) {
    Address memory = 0;
    must(allocate(&memory, bytes) == 0 && fill(memory, 1, bytes) == 0 && synchronize() == 0,
         "no device memory");
    return memory;
}

static double exchange(Address out, Address in, size_t bytes) {
    MPI_Request requests[2];
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Irecv((void*)in, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend((void*)out, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    return (MPI_Wtime() - begin) * 1e6;
}

enum { kExchanges = 400 };

static void report(const char* what, size_t bytes, const double* us, int exchanges) {
    static const int kFirst[] = {1, 5, 20, 100, 400};
    double sum = 0;
    int dearest = 1;
    if (rank != 0) return;
    printf("%-6s %9zu", what, bytes);
    for (int i = 0, column = 0; i < exchanges; ++i) {
        sum += us[i];
        if (i > 0 && us[i] > us[dearest]) dearest = i;
        if (i + 1 == kFirst[column]) {
            printf(" %10.1f", sum);
            ++column;
        }
    }
    printf("   %.1f at %d\n", us[dearest], dearest + 1);
    fflush(stdout);
}

int main(int argc, char** argv) {
    static const size_t kSizes[] = {8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};
    static double us[kExchanges];
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    must(size == 2, "needs two ranks");
    start_driver();
    Address out = buffer(1024), in = buffer(1024);
    us[0] = exchange(out, in, 1024);
    if (rank == 0)
        printf(
            "the very first exchange of the process: %.1f us\n"
            "%-6s %9s %10s %10s %10s %10s %10s   dearest behind the first\n",
            us[0], "", "bytes", "1", "5", "20", "100", "400");
    for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
        const size_t bytes = kSizes[i];
        out = buffer(bytes), in = buffer(bytes);
        for (int step = 0; step < kExchanges; ++step)
            us[step] = exchange(out, in, bytes);
        report("kept", bytes, us, kExchanges);
        release(out);
        release(in);
    }
    for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
        const size_t bytes = kSizes[i];
        for (int step = 0; step < 100; ++step) {
            out = buffer(bytes), in = buffer(bytes);
            us[step] = exchange(out, in, bytes);
            MPI_Barrier(MPI_COMM_WORLD);
            release(out);
            release(in);
        }
        report("fresh", bytes, us, 100);
    }
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages from rank 0 to rank 1, for bench/instructions, which runs it under callgrind. What is counted is
 * the work of each rank while everything it needs is there: a rank that waits for its peer sleeps, uncounted.
 *
 *   rank 0   [starts its sends]        sleeps            [waits for them]
 *   rank 1   sleeps                    [receives them]   sleeps
 *
 *   instructions host|device|strided|bcast|scan|allreduce|alltoall BYTES WINDOW ROUNDS WARMUP
 *
 * WINDOW 0: one message, by MPI_Send and MPI_Recv, whose peer is there a moment later, or has been; a dump for each. bcast, scan,
 * allreduce, alltoall: these calls in its place. In the first two rank 0 waits for nobody, in the others rank 1.
 *
 *   instructions put|get|fetch_and_op|compare_and_swap|flush BYTES 0 ROUNDS WARMUP
 *
 * Calls of rank 0 at host memory of rank 1, which does nothing: of MPI_Win_allocate, in an epoch of MPI_Win_lock_all.
 * fetch_and_op and compare_and_swap are of one MPI_LONG.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { kMostAtOnce = 256 };

static char* allocate(int on_device, int rank, size_t bytes) {
    if (!on_device) return calloc(1, bytes);
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (driver == NULL) return NULL;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*count)(int*) = (int (*)(int*))dlsym(driver, "cuDeviceGetCount");
    int (*retain)(void**, int) = (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*current)(void*) = (int (*)(void*))dlsym(driver, "cuCtxSetCurrent");
    int (*get)(unsigned long long*, size_t) =
        (int (*)(unsigned long long*, size_t))dlsym(driver, "cuMemAlloc_v2");
    int gpus = 0;
    void* context = NULL;
    unsigned long long memory = 0;
    if (init(0) != 0 || count(&gpus) != 0 || gpus < 1 || retain(&context, rank % gpus) != 0 ||
        current(context) != 0 || get(&memory, bytes) != 0)
        return NULL;
    return (char*)memory;
}

static int is_two_sided(const char* kind) {
    static const char* const kinds[] = {"host", "device",    "strided", "bcast",
                                        "scan", "allreduce", "alltoall"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
        if (strcmp(kind, kinds[i]) == 0) return 1;
    return 0;
}

static void one_sided(const char* call, long* numbers, int bytes, MPI_Win window) {
    if (strcmp(call, "put") == 0)
        MPI_Put(numbers, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
    else if (strcmp(call, "get") == 0)
        MPI_Get(numbers, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
    else if (strcmp(call, "fetch_and_op") == 0)
        MPI_Fetch_and_op(&numbers[0], &numbers[1], MPI_LONG, 1, 0, MPI_SUM, window);
    else if (strcmp(call, "compare_and_swap") == 0)
        MPI_Compare_and_swap(&numbers[0], &numbers[2], &numbers[1], MPI_LONG, 1, 0, window);
    else if (strcmp(call, "flush") == 0)
        MPI_Win_flush(1, window);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static int count_one_sided(const char* call, int bytes, int rounds, int warmup) {
    int rank = 0;
    char* base = NULL;
    MPI_Win window;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long* numbers = calloc(3, sizeof *numbers + (size_t)bytes);
    MPI_Win_allocate(bytes + 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    if (numbers == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) {
        MPI_Win_lock_all(0, window);
        for (int round = 0; round < warmup + rounds; ++round) {
            if (round == warmup) CALLGRIND_START_INSTRUMENTATION;
            one_sided(call, numbers, bytes, window);
        }
        CALLGRIND_STOP_INSTRUMENTATION;
        MPI_Win_unlock_all(window);
    }
    MPI_Win_free(&window);
    free(numbers);
    MPI_Finalize();
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 6) return 2;
    if (!is_two_sided(argv[1]))
        return count_one_sided(argv[1], atoi(argv[2]), atoi(argv[4]), atoi(argv[5]));
    const int strided = strcmp(argv[1], "strided") == 0, bcast = strcmp(argv[1], "bcast") == 0,
              scan = strcmp(argv[1], "scan") == 0,
              on_device = strided || strcmp(argv[1], "device") == 0;
    const int allreduce = strcmp(argv[1], "allreduce") == 0,
              alltoall = strcmp(argv[1], "alltoall") == 0;
    const size_t bytes = strtoull(argv[2], NULL, 10);
    const int window = atoi(argv[3]), rounds = atoi(argv[4]), warmup = atoi(argv[5]);
    int rank = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Datatype type = MPI_BYTE;
    int count = (int)bytes;
    size_t extent = bytes;
    if (strided) { /* runs of 256 bytes, as far apart again */
        MPI_Type_vector((int)(bytes / 256), 256, 512, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        count = 1;
        extent = 2 * bytes;
    }
    char* buffer = allocate(on_device, rank, extent * (size_t)(window > 0 ? window : 4));
    if (buffer == NULL || window > kMostAtOnce) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Request requests[kMostAtOnce];
    for (int round = 0; window == 0 && round < warmup + rounds; ++round) {
        const int counted = round >= warmup;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1 && counted)
            usleep(20000); /* the message lies there: its wait is not counted */
        if (counted) CALLGRIND_START_INSTRUMENTATION;
        if (bcast)
            MPI_Bcast(buffer, count, type, 0, MPI_COMM_WORLD);
        else if (scan)
            MPI_Scan(MPI_IN_PLACE, buffer, count, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
        else if (allreduce)
            MPI_Allreduce(buffer, buffer + bytes, count / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        else if (alltoall)
            MPI_Alltoall(buffer, count, type, buffer + 2 * bytes, count, type, MPI_COMM_WORLD);
        else if (rank == 0)
            MPI_Send(buffer, count, type, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(buffer, count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (counted) {
            CALLGRIND_STOP_INSTRUMENTATION;
            CALLGRIND_DUMP_STATS;
        }
    }
    for (int round = 0; window > 0 && round < warmup + rounds; ++round) {
        const int counted = round >= warmup;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1 && counted) usleep(150000); /* likewise, all of the window */
        if (counted) CALLGRIND_START_INSTRUMENTATION;
        for (int i = 0; i < window; ++i) {
            char* const at = buffer + extent * (size_t)i;
            if (rank == 0)
                MPI_Isend(at, count, type, 1, 0, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(at, count, type, 0, 0, MPI_COMM_WORLD, &requests[i]);
        }
        if (rank == 0 && counted) {
            /* Copies out of a device end, and are told of. */
            int done = 0;
            MPI_Testall(window, requests, &done, MPI_STATUSES_IGNORE);
            CALLGRIND_STOP_INSTRUMENTATION;
            usleep(400000); /* the receiver takes the window: polling meanwhile is not counted */
            CALLGRIND_START_INSTRUMENTATION;
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (counted) CALLGRIND_STOP_INSTRUMENTATION;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}

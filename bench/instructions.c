/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages from rank 0 to rank 1, for bench/instructions, which runs it under callgrind. What is counted is
 * the work of each rank while everything it needs is there: a rank that waits for its peer sleeps, uncounted.
 *
 *   rank 0   [starts its sends]        sleeps            [waits for them]
 *   rank 1   sleeps                    [receives them]   sleeps
 *
 *   instructions host|device|strided|bcast|scan BYTES WINDOW ROUNDS WARMUP
 *
 * WINDOW 0: one message, by MPI_Send and MPI_Recv, whose peer is there a moment later, or has been. bcast, scan:
 * these calls in its place, in which rank 0 waits for nobody.
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

int main(int argc, char** argv) {
    if (argc != 6) return 2;
    const int strided = strcmp(argv[1], "strided") == 0, bcast = strcmp(argv[1], "bcast") == 0,
              scan = strcmp(argv[1], "scan") == 0,
              on_device = strided || strcmp(argv[1], "device") == 0;
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
    char* buffer = allocate(on_device, rank, extent * (size_t)(window > 0 ? window : 1));
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
        else if (rank == 0)
            MPI_Send(buffer, count, type, 1, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(buffer, count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (counted) CALLGRIND_STOP_INSTRUMENTATION;
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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations on host memory, as any MPI program calls them: two ranks, the first is the
 * origin, the second waits in a barrier. For each operation and window rank 0 prints a line: operation,
 * window, bytes, microseconds of one call.
 *
 * Time: of a row of calls inside one epoch of MPI_Win_lock_all, divided by their number, the flush that
 * ends them included; the median of a hundred and one such rows, each short enough that most pass
 * between two turns of other processes. Every row has warmed up. Operations with _flush
 * have a flush behind each call. memcpy is that of the C library, from and to memory of this process.
 * The origin's small buffers are of malloc, on the heap.
 * What the rows have written is looked at behind them. Excluded: making windows and epochs.
 *
 * host_windows [WORD...]: only operations and windows whose name has one of these words. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRows = 101, kLarge = 1 << 20, kMiddle = 1 << 16, kWindow = 4 << 20, kItems = 64 };
static MPI_Win window;
static char *mine, *local, *small;
static long *one, *found;
static char* origin(int bytes) {
    return bytes <= 64 ? small : local;
}

typedef void (*call_t)(int bytes);
static void put(int bytes) {
    MPI_Put(origin(bytes), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
}
static void get(int bytes) {
    MPI_Get(origin(bytes), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
}
static void put_flush(int bytes) {
    put(bytes);
    MPI_Win_flush(1, window);
}
static void get_flush(int bytes) {
    get(bytes);
    MPI_Win_flush(1, window);
}
static void accumulate(int bytes) {
    const int count = bytes / (int)sizeof(double);
    MPI_Accumulate(origin(bytes), count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, MPI_SUM, window);
}
static void fetch_and_op(int bytes) {
    (void)bytes;
    MPI_Fetch_and_op(one, found, MPI_LONG, 1, kItems, MPI_SUM, window);
    MPI_Win_flush(1, window);
}
static void compare_and_swap(int bytes) {
    (void)bytes;
    MPI_Compare_and_swap(one, one, found, MPI_LONG, 1, kItems, window);
    MPI_Win_flush(1, window);
}
static void lock_put_unlock(int bytes) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    put(bytes);
    MPI_Win_unlock(1, window);
}
static void copy(int bytes) {
    memcpy(mine, origin(bytes), (size_t)bytes);
    __asm__ volatile("" : : "r"(mine) : "memory"); /* every copy is made */
}

static const struct {
    const char* name;
    call_t call;
    int bytes, epoch; /* epoch: of lock_all, around all rows */
} kCalls[] = {{"memcpy", copy, 8, 1},
              {"put", put, 8, 1},
              {"put_flush", put_flush, 8, 1},
              {"lock_put_unlock", lock_put_unlock, 8, 0},
              {"get", get, 8, 1},
              {"get_flush", get_flush, 8, 1},
              {"fetch_and_op", fetch_and_op, 8, 1},
              {"compare_and_swap", compare_and_swap, 8, 1},
              {"accumulate", accumulate, 8, 1},
              {"memcpy", copy, kMiddle, 1},
              {"put", put, kMiddle, 1},
              {"get", get, kMiddle, 1},
              {"accumulate", accumulate, kMiddle, 1},
              {"memcpy", copy, kLarge, 1},
              {"put", put, kLarge, 1},
              {"get", get, kLarge, 1},
              {"accumulate", accumulate, kLarge, 1}};

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* So many calls take about a fifth of a millisecond. */
static int calls_of(call_t call, int bytes) {
    for (int calls = 1;; calls *= 2) {
        const double start = MPI_Wtime();
        for (int i = 0; i < calls; ++i)
            call(bytes);
        MPI_Win_flush(1, window);
        if (MPI_Wtime() - start > 0.0001) return 2 * calls;
    }
}

static double row(call_t call, int bytes, int epoch, int calls) {
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; ++i)
        call(bytes);
    if (epoch) MPI_Win_flush(1, window);
    return (MPI_Wtime() - start) / calls * 1e6;
}

static void measure(const char* where, const char* name, call_t call, int bytes, int epoch) {
    double rows[kRows];
    int calls;
    if (epoch) MPI_Win_lock_all(0, window);
    calls = epoch ? calls_of(call, bytes) : 100;
    row(call, bytes, epoch, calls);
    for (int i = 0; i < kRows; ++i)
        rows[i] = row(call, bytes, epoch, calls);
    if (epoch) MPI_Win_unlock_all(window);
    qsort(rows, kRows, sizeof rows[0], ascending);
    printf("%s %s %d %.5f\n", name, where, bytes, rows[kRows / 2]);
    fflush(stdout);
}

/* A put arrives, and items are counted: nothing was left out. */
static void check(const char* where) {
    long before, after;
    MPI_Win_lock_all(0, window);
    memset(local, 7, kLarge);
    put(kLarge);
    MPI_Win_flush(1, window);
    memset(local, 0, kLarge);
    get(kLarge);
    MPI_Win_flush(1, window);
    for (int i = 0; i < kLarge; ++i)
        if (local[i] != 7) {
            fprintf(stderr, "%s: byte %d did not arrive\n", where, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    fetch_and_op(8);
    before = *found;
    fetch_and_op(8);
    after = *found;
    MPI_Win_unlock_all(window);
    if (after != before + 1) {
        fprintf(stderr, "%s: %ld and then %ld\n", where, before, after);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int wanted(int argc, char** argv, const char* name) {
    for (int word = 1; word < argc; ++word)
        if (strstr(name, argv[word]) != NULL) return 1;
    return argc == 1;
}

int main(int argc, char** argv) {
    static const char* const kWindows[] = {"allocate", "create", "shared"};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    local = malloc(kWindow);
    small = malloc(64);
    one = malloc(sizeof *one);
    found = malloc(sizeof *found);
    if (local == NULL || small == NULL || one == NULL || found == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(local, 0, kWindow);
    memset(small, 0, 64);
    *one = 1;
    for (int kind = 0; kind < 3; ++kind) {
        char* base = NULL;
        if (kind == 0) {
            MPI_Win_allocate(kWindow, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
        } else if (kind == 1) {
            base = malloc(kWindow);
            MPI_Win_create(base, kWindow, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        } else {
            MPI_Win_allocate_shared(kWindow, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
        }
        mine = base;
        memset(base, 0, kWindow);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; ++i) {
                char name[64];
                snprintf(name, sizeof name, "%s %s", kCalls[i].name, kWindows[kind]);
                if (wanted(argc, argv, name))
                    measure(kWindows[kind], kCalls[i].name, kCalls[i].call, kCalls[i].bytes,
                            kCalls[i].epoch);
            }
            check(kWindows[kind]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_free(&window);
        if (kind == 1) free(base);
    }
    free(local);
    free(small);
    free(one);
    free(found);
    MPI_Finalize();
    return 0;
}

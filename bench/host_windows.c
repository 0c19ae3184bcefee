/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided operations on host memory, as any MPI program calls them: two ranks, the first is the
 * origin, the second waits in a barrier. For each operation and window rank 0 prints a line: operation,
 * window, bytes, microseconds of one call.
 *
 * Time: of a row of calls inside one epoch of MPI_Win_lock_all, divided by their number, the flush that
 * ends them included; the median of a hundred and one such rows, each short enough that most pass
 * between two turns of other processes. Every row has warmed up. Operations with _flush
 * have a flush behind each call. Those of vectors have 1,000 items of 4 bytes, each 16 bytes behind the one
 * before, at the target, and a flush behind each call; minloc has 1,000 pairs. fence and post_start (post,
 * start, complete, wait) are called by both ranks, an 8 byte put of each in every epoch. memcpy is that of the C library, from and to memory of this process.
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
static int peer;       /* the other rank */
static MPI_Aint there; /* where its window begins */
static MPI_Datatype vector;
static MPI_Group other;
static char* origin(int bytes) {
    return bytes <= 64 ? small : local;
}

typedef void (*call_t)(int bytes);
static void put(int bytes) {
    MPI_Put(origin(bytes), bytes, MPI_BYTE, peer, there, bytes, MPI_BYTE, window);
}
static void get(int bytes) {
    MPI_Get(origin(bytes), bytes, MPI_BYTE, peer, there, bytes, MPI_BYTE, window);
}
static void put_flush(int bytes) {
    put(bytes);
    MPI_Win_flush(peer, window);
}
static void get_flush(int bytes) {
    get(bytes);
    MPI_Win_flush(peer, window);
}
static void accumulate(int bytes) {
    const int count = bytes / (int)sizeof(double);
    MPI_Accumulate(origin(bytes), count, MPI_DOUBLE, peer, there, count, MPI_DOUBLE, MPI_SUM,
                   window);
}
static void fetch_and_op(int bytes) {
    (void)bytes;
    MPI_Fetch_and_op(one, found, MPI_LONG, peer, there + kItems, MPI_SUM, window);
    MPI_Win_flush(peer, window);
}
static void compare_and_swap(int bytes) {
    (void)bytes;
    MPI_Compare_and_swap(one, one, found, MPI_LONG, peer, there + kItems, window);
    MPI_Win_flush(peer, window);
}
static void lock_put_unlock(int bytes) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, window);
    put(bytes);
    MPI_Win_unlock(peer, window);
}
static void put_vector(int bytes) {
    MPI_Put(local, bytes / 4, MPI_INT, peer, there, 1, vector, window);
    MPI_Win_flush(peer, window);
}
static void get_vector(int bytes) {
    MPI_Get(local, bytes / 4, MPI_INT, peer, there, 1, vector, window);
    MPI_Win_flush(peer, window);
}
static void accumulate_vector(int bytes) {
    MPI_Accumulate(local, bytes / 4, MPI_INT, peer, there, 1, vector, MPI_SUM, window);
    MPI_Win_flush(peer, window);
}
static void get_accumulate_vector(int bytes) {
    MPI_Get_accumulate(local, bytes / 4, MPI_INT, local + kMiddle, bytes / 4, MPI_INT, peer, there,
                       1, vector, MPI_SUM, window);
    MPI_Win_flush(peer, window);
}
static void minloc(int bytes) {
    const int count = bytes / 12;
    MPI_Accumulate(local, count, MPI_DOUBLE_INT, peer, there, count, MPI_DOUBLE_INT, MPI_MINLOC,
                   window);
    MPI_Win_flush(peer, window);
}
/* Of both ranks. */
static void fence(int bytes) {
    put(bytes);
    MPI_Win_fence(0, window);
}
static void post_start(int bytes) {
    MPI_Win_post(other, 0, window);
    MPI_Win_start(other, 0, window);
    put(bytes);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
}
static void copy(int bytes) {
    memcpy(mine, origin(bytes), (size_t)bytes);
    __asm__ volatile("" : : "r"(mine) : "memory"); /* every copy is made */
}

static const struct {
    const char* name;
    call_t call;
    int bytes;
    enum { kAlone, kLocked, kTogether } epoch; /* kLocked: of lock_all, around all rows */
} kCalls[] = {{"memcpy", copy, 8, kLocked},
              {"put", put, 8, kLocked},
              {"put_flush", put_flush, 8, kLocked},
              {"lock_put_unlock", lock_put_unlock, 8, kAlone},
              {"get", get, 8, kLocked},
              {"get_flush", get_flush, 8, kLocked},
              {"fetch_and_op", fetch_and_op, 8, kLocked},
              {"compare_and_swap", compare_and_swap, 8, kLocked},
              {"accumulate", accumulate, 8, kLocked},
              {"put_vector", put_vector, 4000, kLocked},
              {"get_vector", get_vector, 4000, kLocked},
              {"accumulate_vector", accumulate_vector, 4000, kLocked},
              {"get_acc_vector", get_accumulate_vector, 4000, kLocked},
              {"minloc", minloc, 12000, kLocked},
              {"put_flush", put_flush, 4096, kLocked},
              {"fence", fence, 8, kTogether},
              {"post_start", post_start, 8, kTogether},
              {"memcpy", copy, kMiddle, kLocked},
              {"put", put, kMiddle, kLocked},
              {"get", get, kMiddle, kLocked},
              {"accumulate", accumulate, kMiddle, kLocked},
              {"memcpy", copy, kLarge, kLocked},
              {"put", put, kLarge, kLocked},
              {"get", get, kLarge, kLocked},
              {"accumulate", accumulate, kLarge, kLocked}};

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
        MPI_Win_flush(peer, window);
        if (MPI_Wtime() - start > 0.0001) return 2 * calls;
    }
}

static double row(call_t call, int bytes, int epoch, int calls) {
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; ++i)
        call(bytes);
    if (epoch == kLocked) MPI_Win_flush(peer, window);
    return (MPI_Wtime() - start) / calls * 1e6;
}

static void measure(const char* where, const char* name, call_t call, int bytes, int epoch) {
    double rows[kRows];
    int calls = 100;
    if (epoch == kTogether) MPI_Win_fence(0, window);
    if (epoch == kLocked) {
        MPI_Win_lock_all(0, window);
        calls = calls_of(call, bytes);
    }
    row(call, bytes, epoch, calls);
    for (int i = 0; i < kRows; ++i)
        rows[i] = row(call, bytes, epoch, calls);
    if (epoch == kLocked) MPI_Win_unlock_all(window);
    if (epoch == kTogether) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    qsort(rows, kRows, sizeof rows[0], ascending);
    if (peer == 0) return;
    printf("%s %s %d %.5f\n", name, where, bytes, rows[kRows / 2]);
    fflush(stdout);
}

/* A put arrives, and items are counted: nothing was left out. */
static void check(const char* where) {
    long before, after;
    MPI_Win_lock_all(0, window);
    memset(local, 7, kLarge);
    put(kLarge);
    MPI_Win_flush(peer, window);
    memset(local, 0, kLarge);
    get(kLarge);
    MPI_Win_flush(peer, window);
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
    static const char* const kWindows[] = {"allocate", "create", "shared", "dynamic"};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    MPI_Group everybody;
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    MPI_Group_incl(everybody, 1, &peer, &other);
    MPI_Group_free(&everybody);
    MPI_Type_vector(1000, 1, 4, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    local = malloc(kWindow);
    small = malloc(64);
    one = malloc(sizeof *one);
    found = malloc(sizeof *found);
    if (local == NULL || small == NULL || one == NULL || found == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(local, 0, kWindow);
    memset(small, 0, 64);
    *one = 1;
    for (int kind = 0; kind < 4; ++kind) {
        char* base = NULL;
        if (kind == 0) {
            MPI_Win_allocate(kWindow, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
        } else if (kind == 1) {
            base = malloc(kWindow);
            MPI_Win_create(base, kWindow, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        } else if (kind == 3) {
            base = malloc(kWindow);
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
            MPI_Win_attach(window, base, kWindow);
        } else {
            MPI_Win_allocate_shared(kWindow, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
        }
        mine = base;
        there = 0;
        if (kind == 3) {
            MPI_Aint begin[2], own;
            MPI_Get_address(base, &own);
            MPI_Allgather(&own, 1, MPI_AINT, begin, 1, MPI_AINT, MPI_COMM_WORLD);
            there = begin[peer];
        }
        memset(base, 0, kWindow);
        MPI_Barrier(MPI_COMM_WORLD);
        for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; ++i) {
            char name[64];
            snprintf(name, sizeof name, "%s %s", kCalls[i].name, kWindows[kind]);
            if (wanted(argc, argv, name) && (rank == 0 || kCalls[i].epoch == kTogether))
                measure(kWindows[kind], kCalls[i].name, kCalls[i].call, kCalls[i].bytes,
                        kCalls[i].epoch);
            /* The target waits for the rows of rank 0. */
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (rank == 0) check(kWindows[kind]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_free(&window);
        if (kind == 1 || kind == 3) free(base);
    }
    free(local);
    free(small);
    free(one);
    free(found);
    MPI_Finalize();
    return 0;
}

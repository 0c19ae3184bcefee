/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Host messages between the threads of two ranks. Each thread of a rank has one partner, the thread of
 * the same number in the other rank. For each row rank 0 prints a line: name, threads of a rank, bytes,
 * value.
 *
 *   latency          us of a message; every pair of threads plays ping-pong on a communicator of its own
 *   latency_waiting  the same for one pair; the other threads wait in MPI_Recv meanwhile
 *   rate_own         million messages a second of all pairs together, a communicator each
 *   rate_tags        the same over one communicator, a tag each
 *
 * A rate is that of windows of 64 nonblocking messages, each answered by an empty one. Every value is the
 * median of five rows of at least a twentieth of a second. Time starts when all threads of rank 0 stand
 * before their first message, after a warm-up, and stops when the last is done with its own. The number
 * in every message is looked at. Excluded: making threads and communicators.
 *
 * host_threads LEVEL THREADS BYTES [WORD...]: LEVEL is single (one thread) or multiple; only rows whose
 * name has one of the words. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRows = 5, kWindow = 64, kMostThreads = 64, kRelease = 1000 };
static int rank, threads, bytes;
static MPI_Comm own[kMostThreads];
static pthread_barrier_t together;

static void must_be(int number, int expected) {
    if (number == expected) return;
    fprintf(stderr, "message %d came when %d was due\n", number, expected);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void play(char* buffer, MPI_Comm comm, long repeats) {
    for (long i = 0; i < repeats; ++i) {
        const int number = (int)(i % 1000000);
        if (rank == 0) {
            memcpy(buffer, &number, sizeof number);
            MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, comm);
        }
        MPI_Recv(buffer, bytes, MPI_BYTE, 1 - rank, 0, comm, MPI_STATUS_IGNORE);
        int came;
        memcpy(&came, buffer, sizeof came);
        must_be(came, number);
        if (rank == 1) MPI_Send(buffer, bytes, MPI_BYTE, 0, 0, comm);
    }
}

static void windows(char* buffers, MPI_Comm comm, int tag, long repeats) {
    MPI_Request requests[kWindow];
    for (long i = 0; i < repeats; ++i) {
        for (int k = 0; k < kWindow; ++k) {
            char* buffer = buffers + (size_t)k * (size_t)bytes;
            if (rank == 0) {
                memcpy(buffer, &k, sizeof k);
                MPI_Isend(buffer, bytes, MPI_BYTE, 1, tag, comm, &requests[k]);
            } else {
                MPI_Irecv(buffer, bytes, MPI_BYTE, 0, tag, comm, &requests[k]);
            }
        }
        MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, 1, tag, comm, MPI_STATUS_IGNORE);
            continue;
        }
        for (int k = 0; k < kWindow; ++k) {
            int came;
            memcpy(&came, buffers + (size_t)k * (size_t)bytes, sizeof came);
            must_be(came, k);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 0, tag, comm);
    }
}

/* --- rows: what thread `thread` does ---------------------------------------------------------- */

static void latency(int thread, char* buffers, long repeats) {
    play(buffers, own[thread], repeats);
}
static void latency_waiting(int thread, char* buffers, long repeats) {
    if (thread == 0) play(buffers, own[0], repeats);
}
static void rate_own(int thread, char* buffers, long repeats) {
    windows(buffers, own[thread], 0, repeats);
}
static void rate_tags(int thread, char* buffers, long repeats) {
    windows(buffers, MPI_COMM_WORLD, thread, repeats);
}

typedef void (*work_t)(int thread, char* buffers, long repeats);
static const struct row {
    const char* name;
    work_t work;
    int is_rate, one_pair, least_threads;
} kRowsOf[] = {{"latency", latency, 0, 0, 1},
               {"latency_waiting", latency_waiting, 0, 1, 2},
               {"rate_own", rate_own, 1, 0, 1},
               {"rate_tags", rate_tags, 1, 0, 1}};

/* --- time -------------------------------------------------------------------------------------- */

static struct {
    const struct row* row;
    long repeats;
    double start, end[kMostThreads];
} now;

static void* one_thread(void* argument) {
    const int thread = (int)(size_t)argument;
    const int waits = now.row->one_pair && thread > 0;
    char* buffers = calloc(kWindow, (size_t)bytes);
    if (buffers == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    if (!waits) now.row->work(thread, buffers, now.repeats / 20 + 1);
    pthread_barrier_wait(&together);
    if (thread == 0) now.start = MPI_Wtime();
    if (waits) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, kRelease, own[thread], MPI_STATUS_IGNORE);
    } else {
        now.row->work(thread, buffers, now.repeats);
    }
    now.end[thread] = MPI_Wtime();
    for (int other = 1; now.row->one_pair && thread == 0 && other < threads; ++other)
        MPI_Send(NULL, 0, MPI_BYTE, 1 - rank, kRelease, own[other]);
    free(buffers);
    return NULL;
}

static double seconds(const struct row* row, long repeats) {
    pthread_t ids[kMostThreads];
    double last = 0;
    now.row = row;
    now.repeats = repeats;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 1; i < threads; ++i)
        if (pthread_create(&ids[i], NULL, one_thread, (void*)(size_t)i) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    one_thread((void*)0);
    for (int i = 1; i < threads; ++i)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < (row->one_pair ? 1 : threads); ++i)
        if (now.end[i] > last) last = now.end[i];
    last -= now.start;
    MPI_Bcast(&last, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return last;
}

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void measure(const struct row* row) {
    double values[kRows];
    long repeats = 4;
    while (seconds(row, repeats) < 0.05)
        repeats *= 2;
    for (int i = 0; i < kRows; ++i) {
        const double took = seconds(row, repeats);
        values[i] = row->is_rate ? (double)repeats * kWindow * threads / took * 1e-6
                                 : took / (double)repeats / 2 * 1e6;
    }
    qsort(values, kRows, sizeof values[0], ascending);
    if (rank == 0) printf("%s %d %d %.5f\n", row->name, threads, bytes, values[kRows / 2]);
    fflush(stdout);
}

static int wanted(int argc, char** argv, const char* name) {
    for (int word = 4; word < argc; ++word)
        if (strstr(name, argv[word]) != NULL) return 1;
    return argc <= 4;
}

int main(int argc, char** argv) {
    int level;
    if (argc < 4) {
        fprintf(stderr, "host_threads single|multiple THREADS BYTES [WORD...]\n");
        return 2;
    }
    threads = atoi(argv[2]);
    bytes = atoi(argv[3]);
    if (strcmp(argv[1], "single") == 0) {
        threads = 1;
        MPI_Init(&argc, &argv);
    } else {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
        if (level != MPI_THREAD_MULTIPLE) {
            fprintf(stderr, "this library has no MPI_THREAD_MULTIPLE\n");
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (threads < 1 || threads > kMostThreads || bytes < (int)sizeof(int)) {
        fprintf(stderr, "1 to %d threads, at least %d bytes\n", kMostThreads, (int)sizeof(int));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (int i = 0; i < threads; ++i)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    for (size_t i = 0; i < sizeof kRowsOf / sizeof kRowsOf[0]; ++i)
        if (threads >= kRowsOf[i].least_threads && wanted(argc, argv, kRowsOf[i].name))
            measure(&kRowsOf[i]);
    for (int i = 0; i < threads; ++i)
        MPI_Comm_free(&own[i]);
    MPI_Finalize();
    return 0;
}

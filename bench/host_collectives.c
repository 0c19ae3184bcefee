/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives of host memory, as any MPI program calls them. For each operation and size rank 0 prints
 * a line: operation, bytes, microseconds of one call, page faults of one call.
 *
 * Time: of a row of calls behind a barrier, divided by their number, the largest of all ranks; the
 * median of five such rows. Every row has warmed up. Page faults: those without reading from a disk, of
 * the rank that has most, while the rows run. Excluded: starting, and filling the buffers.
 *
 * host_collectives [SMALLEST LARGEST [OPERATION...]]; an operation with _in_place gets MPI_IN_PLACE. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { kRows = 5 };
static int rank, size;
static char *out, *in;

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

typedef void (*call_t)(int bytes, int in_place);
static void* from(int in_place) {
    return in_place ? MPI_IN_PLACE : out;
}
static void barrier(int b, int p) {
    (void)b, (void)p;
    MPI_Barrier(MPI_COMM_WORLD);
}
static void bcast(int b, int p) {
    (void)p;
    MPI_Bcast(in, b, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void reduce(int b, int p) {
    MPI_Reduce(rank == 0 ? from(p) : out, in, b / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void allreduce(int b, int p) {
    MPI_Allreduce(from(p), in, b / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void reduce_scatter(int b, int p) {
    MPI_Reduce_scatter_block(from(p), in, b / 4 / size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void allgather(int b, int p) {
    MPI_Allgather(from(p), b / size, MPI_BYTE, in, b / size, MPI_BYTE, MPI_COMM_WORLD);
}
static void alltoall(int b, int p) {
    MPI_Alltoall(from(p), b / size, MPI_BYTE, in, b / size, MPI_BYTE, MPI_COMM_WORLD);
}
static void gather(int b, int p) {
    MPI_Gather(rank == 0 ? from(p) : out, b / size, MPI_BYTE, in, b / size, MPI_BYTE, 0,
               MPI_COMM_WORLD);
}
static void scatter(int b, int p) {
    (void)p;
    MPI_Scatter(out, b / size, MPI_BYTE, in, b / size, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void scan(int b, int p) {
    MPI_Scan(from(p), in, b / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static const struct {
    const char* name;
    call_t call;
} kCalls[] = {{"barrier", barrier},
              {"bcast", bcast},
              {"reduce", reduce},
              {"allreduce", allreduce},
              {"reduce_scatter", reduce_scatter},
              {"allgather", allgather},
              {"alltoall", alltoall},
              {"gather", gather},
              {"scatter", scatter},
              {"scan", scan}};

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void measure(const char* name, call_t call, int bytes, int in_place) {
    const int calls = bytes <= 4096 ? 400 : bytes <= 262144 ? 60 : bytes <= 4194304 ? 10 : 2;
    double rows[kRows], faulted = 0;
    memset(in, 0, (size_t)bytes);
    for (int i = 0; i < calls / 4 + 1; ++i)
        call(bytes, in_place);
    for (int row = 0; row < kRows; ++row) {
        if (in_place) memset(in, 0, (size_t)bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        const long before = faults();
        const double start = MPI_Wtime();
        for (int i = 0; i < calls; ++i)
            call(bytes, in_place);
        double mine[2] = {(MPI_Wtime() - start) / calls, (double)(faults() - before) / calls},
               most[2];
        MPI_Reduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        rows[row] = most[0];
        if (rank == 0) faulted += most[1] / kRows;
    }
    if (rank != 0) return;
    qsort(rows, kRows, sizeof rows[0], ascending);
    printf("%s%s %d %.3f %.1f\n", name, in_place ? "_in_place" : "", bytes, rows[kRows / 2] * 1e6,
           faulted);
    fflush(stdout);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int smallest = argc > 1 ? atoi(argv[1]) : 8, largest = argc > 2 ? atoi(argv[2]) : 1 << 20;
    out = calloc((size_t)largest + 64, 1);
    in = calloc((size_t)largest + 64, 1);
    if (out == NULL || in == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; ++i)
        for (int in_place = 0; in_place < 2; ++in_place) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", kCalls[i].name, in_place ? "_in_place" : "");
            int wanted = argc <= 3 && (in_place == 0 || strcmp(kCalls[i].name, "allreduce") == 0);
            for (int word = 3; word < argc; ++word)
                wanted |= strcmp(argv[word], name) == 0;
            for (long bytes = smallest; wanted && bytes <= largest; bytes *= 8) {
                measure(kCalls[i].name, kCalls[i].call, (int)bytes, in_place);
                if (kCalls[i].call == barrier) break;
            }
        }
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Heat flows through a rod that the ranks share, by OpenACC: the field stays on the GPU, and its first and last cells go
 * straight from there to the neighbours.
 *
 *     mpicc -O2 -fopenacc openacc.c -o openacc && mpiexec -n 2 ./openacc
 *
 * Without a GPU, or without GCC's offload compiler, the same program runs on the processor. */
#include <mpi.h>
#include <stdio.h>

enum { CELLS = 1000, STEPS = 200 };

static double now[CELLS + 2], next[CELLS + 2];

int main(int argc, char** argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int below = rank > 0 ? rank - 1 : MPI_PROC_NULL,
              above = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    if (rank == 0) now[1] = next[1] = 1000;

    double sum = 0, all = 0;
#pragma acc data copy(now) create(next)
    for (int step = 0; step < STEPS; ++step) {
/* Inside, `now` is the address on the GPU. */
#pragma acc host_data use_device(now)
        {
            MPI_Sendrecv(now + 1, 1, MPI_DOUBLE, below, 0, now + CELLS + 1, 1, MPI_DOUBLE, above, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Sendrecv(now + CELLS, 1, MPI_DOUBLE, above, 1, now, 1, MPI_DOUBLE, below, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
#pragma acc parallel loop present(now, next)
        for (int i = 1; i <= CELLS; ++i) {
            const double left = i == 1 && rank == 0 ? now[i] : now[i - 1];
            const double right = i == CELLS && rank + 1 == ranks ? now[i] : now[i + 1];
            next[i] = now[i] + 0.25 * (left - 2 * now[i] + right);
        }
#pragma acc parallel loop present(now, next)
        for (int i = 1; i <= CELLS; ++i)
            now[i] = next[i];
    }
    for (int i = 1; i <= CELLS; ++i)
        sum += now[i];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("heat %.6f, as at the start: 1000\n", all);
    MPI_Finalize();
    return all > 999.999 && all < 1000.001 ? 0 : 1;
}

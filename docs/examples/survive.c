/* SPDX-License-Identifier: BSD-3-Clause */
/* A solver that loses a rank and ends right (docs/user/faults.md): mpiexec --keep-going -n 4 ./survive
   Heat in a ring, of which each rank has a part in device memory. Every tenth step each rank keeps a copy of its part and one of
   its left neighbour's. When a rank dies, the others revoke the communicator, shrink it, spawn a replacement, give it the copy
   that its neighbour has, and go on from there. */
#include <cuda_runtime.h>
#include <mpi-ext.h>
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS 1024 /* of a part; one more on each side belongs to a neighbour */
#define STEPS 60
#define EVERY 10
#define PART_BYTES (CELLS * sizeof(double))

static MPI_Comm world;  /* rank and part are the same number */
static int parts, mine; /* parts of the ring, and which one this rank has */
static double* field;   /* on the device: CELLS + 2 */
static double*
    kept; /* on the device: my part at the last checkpoint, my left neighbour's, and the two of the next one */
static int kept_step = -1;
static double host[CELLS + 2];

static double* my_copy(int next) {
    return kept + 2 * next * CELLS;
}
static double* neighbours_copy(int next) {
    return my_copy(next) + CELLS;
}

static void step_of(double* next, const double* now, int cells) {
    for (int i = 1; i <= cells; ++i)
        next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
}

static double at_start(int cell) {
    return cell % 97 == 0 ? 1000.0 + cell : 0.0;
}

/* One step. The edges of device memory go to the neighbours as they are. */
static int advance(void) {
    const int left = (mine + parts - 1) % parts, right = (mine + 1) % parts;
    int code = MPI_Sendrecv(field + 1, 1, MPI_DOUBLE, left, 0, field + CELLS + 1, 1, MPI_DOUBLE,
                            right, 0, world, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Sendrecv(field + CELLS, 1, MPI_DOUBLE, right, 1, field, 1, MPI_DOUBLE, left, 1,
                        world, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    /* a kernel in a program that is about speed */
    double next[CELLS + 2];
    cudaMemcpy(host, field, sizeof host, cudaMemcpyDeviceToHost);
    step_of(next, host, CELLS);
    cudaMemcpy(field + 1, next + 1, PART_BYTES, cudaMemcpyHostToDevice);
    return MPI_SUCCESS;
}

/* Everybody's copies are those of the same step: all take the new ones, or nobody does. */
static int checkpoint(int step) {
    const int left = (mine + parts - 1) % parts, right = (mine + 1) % parts;
    const int code = MPI_Sendrecv(field + 1, CELLS, MPI_DOUBLE, right, 2, neighbours_copy(1), CELLS,
                                  MPI_DOUBLE, left, 2, world, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) MPIX_Comm_revoke(world); /* others may wait for this rank */
    cudaMemcpy(my_copy(1), field + 1, PART_BYTES, cudaMemcpyDeviceToDevice);
    int all_have_it = code == MPI_SUCCESS;
    const int agreed = MPIX_Comm_agree(world, &all_have_it);
    if (all_have_it) {
        cudaMemcpy(kept, my_copy(1), 2 * PART_BYTES, cudaMemcpyDeviceToDevice);
        kept_step = step;
    }
    return code != MPI_SUCCESS ? code : agreed;
}

/* Those that live and those that were spawned meet in `all`; who is new takes a part that was lost. */
static void take_parts(MPI_Comm all, int is_new) {
    int ranks, rank;
    MPI_Comm_size(all, &ranks);
    MPI_Comm_rank(all, &rank);
    int* has = malloc(sizeof(int) * (size_t)ranks);
    const int my_part = is_new ? -1 : mine;
    MPI_Allgather(&my_part, 1, MPI_INT, has, 1, MPI_INT, all);
    MPI_Allreduce(MPI_IN_PLACE, &kept_step, 1, MPI_INT, MPI_MAX, all);
    parts = ranks;
    for (int part = 0, next = 0; part < parts; ++part) {
        int taken = 0;
        for (int i = 0; i < ranks; ++i)
            taken = taken || has[i] == part;
        if (taken) continue;
        while (has[next] >= 0)
            ++next;
        has[next] = part;
        if (next == rank) mine = part;
    }
    free(has);
    MPI_Comm_split(all, 0, mine, &world);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_free(&all);

    /* The right neighbour of a lost part has its copy. */
    int* is_new_part = malloc(sizeof(int) * (size_t)parts);
    MPI_Allgather(&is_new, 1, MPI_INT, is_new_part, 1, MPI_INT, world);
    const int left = (mine + parts - 1) % parts, right = (mine + 1) % parts;
    if (is_new_part[left] && !is_new) MPI_Send(kept + CELLS, CELLS, MPI_DOUBLE, left, 3, world);
    if (is_new) {
        if (is_new_part[right]) MPI_Abort(world, 3); /* it is gone with its copy */
        MPI_Recv(kept, CELLS, MPI_DOUBLE, right, 3, world, MPI_STATUS_IGNORE);
    }
    free(is_new_part);
    cudaMemcpy(field + 1, kept, PART_BYTES, cudaMemcpyDeviceToDevice);
}

static void repair(char* program) {
    MPI_Comm living, spawned, all;
    char* arguments[] = {(char*)"replacement", NULL};
    int ranks;
    MPIX_Comm_revoke(world); /* whoever waits for somebody hears of it */
    MPIX_Comm_shrink(world, &living);
    MPI_Comm_size(living, &ranks);
    MPI_Comm_free(&world);
    MPI_Comm_spawn(program, arguments, parts - ranks, MPI_INFO_NULL, 0, living, &spawned,
                   MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(spawned, 0, &all);
    MPI_Comm_free(&spawned);
    MPI_Comm_free(&living);
    take_parts(all, 0);
}

static int is_right(void) {
    const int cells = parts * CELLS;
    double* now = malloc(sizeof(double) * (size_t)(cells + 2));
    double* next = malloc(sizeof(double) * (size_t)(cells + 2));
    for (int i = 0; i < cells; ++i)
        now[i + 1] = at_start(i);
    for (int step = 0; step < STEPS; ++step) {
        now[0] = now[cells];
        now[cells + 1] = now[1];
        step_of(next, now, cells);
        double* swapped = now;
        now = next;
        next = swapped;
    }
    cudaMemcpy(host, field, sizeof host, cudaMemcpyDeviceToHost);
    const int same = memcmp(host + 1, now + 1 + mine * CELLS, PART_BYTES) == 0;
    free(now);
    free(next);
    return same;
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    int gpus = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    const int is_new = parent != MPI_COMM_NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        fprintf(stderr, "there is no GPU here\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    cudaSetDevice(mine % gpus);
    cudaMalloc((void**)&field, sizeof host);
    cudaMalloc((void**)&kept, 4 * PART_BYTES);

    if (!is_new) {
        MPI_Comm_dup(MPI_COMM_WORLD, &world);
        MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
        MPI_Comm_size(world, &parts);
        for (int i = 0; i < CELLS; ++i)
            host[i + 1] = at_start(mine * CELLS + i);
        cudaMemcpy(field, host, sizeof host, cudaMemcpyHostToDevice);
    } else {
        MPI_Comm all;
        MPI_Intercomm_merge(parent, 1, &all);
        MPI_Comm_free(&parent);
        take_parts(all, 1);
    }
    const int dies = !is_new && mine == 1; /* an accident */
    int step = is_new ? kept_step : 0, done = 0;
    while (!done) {
        int code = step % EVERY == 0 && step < STEPS ? checkpoint(step) : MPI_SUCCESS;
        if (dies && step == STEPS / 2 + 5) raise(SIGKILL);
        if (step < STEPS) {
            if (code == MPI_SUCCESS) code = advance();
            ++step;
        } else { /* nobody leaves while another one must go back */
            done = 1;
            code = MPIX_Comm_agree(world, &done);
        }
        if (code != MPI_SUCCESS) {
            repair(argv[0]);
            step = kept_step;
            done = 0;
        }
    }
    printf("part %d of %d is %s\n", mine, parts, is_right() ? "right" : "wrong");
    cudaFree(field);
    cudaFree(kept);
    MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}

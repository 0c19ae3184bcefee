/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that loads the library named by its argument and then starts MPI. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    if (argc < 2 || dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == NULL) return 3;
    MPI_Init(NULL, NULL);
    printf("it started\n");
    MPI_Finalize();
    return 0;
}

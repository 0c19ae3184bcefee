// SPDX-License-Identifier: BSD-3-Clause
//
// A program with Fortran and C++ parts that call MPI, of which the one runs that its argument names.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

void of_fortran(int* comm, int* error) __asm__("mpi_barrier_");
void of_fortran_2008(int* comm, int* error) __asm__("mpi_barrier_f08_");
void of_cxx(void* object) __asm__("_ZN3MPI3Win4FreeEv");
extern char common_block[] __asm__(COMMON_BLOCK);

int main(int argc, char** argv) {
    const char* part = argc > 1 ? argv[1] : "";
    int integer = 0;
    MPI_Init(&argc, &argv);
    if (strcmp(part, "fortran") == 0) of_fortran(&integer, &integer);
    if (strcmp(part, "fortran 2008") == 0) of_fortran_2008(&integer, &integer);
    if (strcmp(part, "c++") == 0) of_cxx(common_block);
    MPI_Finalize();
    printf("it ran\n");
    return 0;
}

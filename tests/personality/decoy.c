/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with the name of another MPI's, of no use: a test sees whether it was loaded. */
int decoy_of_an_mpi_library(void);
int decoy_of_an_mpi_library(void) {
    return 1;
}

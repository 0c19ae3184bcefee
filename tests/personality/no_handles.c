/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers that are no handles, as MPICH's programs may hold them: each is refused. */
#include <mpi.h>

#include <stdio.h>

int main(int argc, char** argv) {
    /* Around numbers of objects that live; the highest and lowest of each kind of number; nothing at all. */
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int value = 0, taken = 0;
    MPI_Request pending;
    MPI_Irecv(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &pending);
    const unsigned lives = (unsigned)pending & 0x3ffffff;
    const unsigned numbers[] = {lives - 1, lives + 1, lives + 8, 0,         1,
                                0x1234,    0x1ffffff, 0x2000000, 0x2000001, 0x3ffffff};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        MPI_Request request = (MPI_Request)(0xec000000 | numbers[i]);
        taken += MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
        const MPI_Datatype type = (MPI_Datatype)(0xcc000000 | numbers[i]);
        taken += MPI_Send(&value, 1, type, 0, 0, MPI_COMM_SELF) == MPI_SUCCESS;
        const MPI_Win window = (MPI_Win)(0xe0000000 | numbers[i]);
        taken += MPI_Win_fence(0, window) == MPI_SUCCESS;
    }
    MPI_Cancel(&pending);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    printf("%d were taken for handles\n", taken);
    MPI_Finalize();
    return taken;
}

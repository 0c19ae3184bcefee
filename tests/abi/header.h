/* SPDX-License-Identifier: BSD-3-Clause */
/* What both languages must be able to say about mpi.h and mpi-ext.h: compiled as strict C and as
 * strict C++. */
#include <mpi.h>

#include <mpi-ext.h>

#if !defined(MPI_VERSION) || MPI_VERSION != 5 || MPI_SUBVERSION != 0
#error "MPI_VERSION must be a preprocessor constant"
#endif
#if !defined(MPIX_CUDA_AWARE_SUPPORT) || !MPIX_CUDA_AWARE_SUPPORT
#error "MPIX_CUDA_AWARE_SUPPORT must be a preprocessor constant"
#endif
#if !defined(MPI_THREAD_MULTIPLE) || !defined(MPI_COMM_TYPE_SHARED)
#error "programs test for constants with #ifdef"
#endif

/* Constants are constant expressions: static initialisers, case labels, array bounds, bit
 * operations. */
static MPI_Comm communicators[] = {MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD};
static MPI_Datatype types[] = {MPI_INT, MPI_LONG_LONG_INT, MPI_C_COMPLEX};
static char name[MPI_MAX_PROCESSOR_NAME];
static const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;

static int describe(int rank, int tag) {
    int wanted = rank < 0 ? MPI_ANY_SOURCE : rank;
    switch (tag) {
        case MPI_ANY_TAG: return wanted;
        case MPI_UNDEFINED: return MPI_PROC_NULL;
        default: return tag == MPI_ROOT ? MPI_SUCCESS : MPI_ERR_TAG;
    }
}

/* The names that C programs with Fortran callers use: C, and back, by value. */
static int round_trips(void) {
    MPI_Status status = {0, 0, 0, {0}};
    MPI_Fint in_fortran[MPI_F_STATUS_SIZE];
    status.MPI_TAG = 7;
    return MPI_Status_c2f(&status, in_fortran) == MPI_SUCCESS && in_fortran[MPI_F_TAG] == 7 &&
           MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_SELF)) == MPI_COMM_SELF &&
           MPI_Type_f2c(MPI_Type_c2f(MPI_INT)) == MPI_INT &&
           MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM &&
           MPI_Info_f2c(MPI_Info_c2f(MPI_INFO_NULL)) == MPI_INFO_NULL &&
           MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL;
}

/* Without a warning: compilers judge what is passed for an array. */
static int makes_graphs(MPI_Comm comm) {
    int me = 0, one = 1;
    MPI_Comm made;
    return MPI_Dist_graph_create_adjacent(comm, 1, &me, MPI_UNWEIGHTED, 1, &me, MPI_UNWEIGHTED,
                                          MPI_INFO_NULL, 0, &made) +
           MPI_Dist_graph_create(comm, 1, &me, &one, &me, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
                                 &made) +
           MPI_Dist_graph_neighbors(made, 1, &me, MPI_UNWEIGHTED, 1, &me, MPI_WEIGHTS_EMPTY);
}

int main(void) {
    int (*graphs)(MPI_Comm) = makes_graphs;
    MPI_Comm_copy_attr_function* copy = MPI_COMM_DUP_FN;
    int ok = round_trips() && describe(-1, MPI_ANY_TAG) == MPI_ANY_SOURCE && mode == 34 &&
             copy != MPI_COMM_NULL_COPY_FN;
    ok = ok && graphs != 0;
    ok = ok && sizeof(name) == 256 && communicators[0] != communicators[1] && types[0] != types[1];
    return ok ? 0 : 1;
}

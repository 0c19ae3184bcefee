// SPDX-License-Identifier: BSD-3-Clause
//
// What MPICH's header declares as variables: their values are this library's choice, so those that
// the standard's functions take are the standard's.
#include "theirs.hpp"

#define GANTRY_VARIABLE(type, name, symbol)                                        \
    extern type const name __asm__(symbol) __attribute__((visibility("default"))); \
    type const name

namespace gantry::personality {
namespace {

theirs::Status fortran_status, fortran_statuses;

}  // namespace

GANTRY_VARIABLE(int*, unweighted, "MPI_UNWEIGHTED") = MPI_UNWEIGHTED;
GANTRY_VARIABLE(int*, weights_empty, "MPI_WEIGHTS_EMPTY") = MPI_WEIGHTS_EMPTY;
GANTRY_VARIABLE(MPI_T_pvar_handle, all_handles, "MPI_T_PVAR_ALL_HANDLES") = MPI_T_PVAR_ALL_HANDLES;
GANTRY_VARIABLE(int*, f_ignore, "MPI_F_STATUS_IGNORE") = &fortran_status.count_low;
GANTRY_VARIABLE(int*, f_ignore_all, "MPI_F_STATUSES_IGNORE") = &fortran_statuses.count_low;
GANTRY_VARIABLE(theirs::Status*, f08_ignore, "MPI_F08_STATUS_IGNORE") = &fortran_status;
GANTRY_VARIABLE(theirs::Status*, f08_ignore_all, "MPI_F08_STATUSES_IGNORE") = &fortran_statuses;

// MPI_DUP_FN, MPI_COMM_DUP_FN and so on: an attribute is copied as it is.
int duplicate(int object, int keyval, void* extra_state, void* in, void* out,
              int* flag) __asm__("MPIR_Dup_fn") __attribute__((visibility("default")));
int duplicate(int, int, void*, void* in, void* out, int* flag) {
    *static_cast<void**>(out) = in;
    *flag = 1;
    return 0;
}

}  // namespace gantry::personality

// SPDX-License-Identifier: BSD-3-Clause
//
// What MPICH's header declares as variables: their values are this library's choice, so those that
// the standard's functions take are the standard's.
#include "common/export.hpp"
#include "theirs.hpp"

namespace gantry::personality {
namespace {

theirs::Status ignored, all_ignored;

}  // namespace

GANTRY_VARIABLE(int* const, unweighted, "MPI_UNWEIGHTED") = MPI_UNWEIGHTED;
GANTRY_VARIABLE(int* const, weights_empty, "MPI_WEIGHTS_EMPTY") = MPI_WEIGHTS_EMPTY;
GANTRY_VARIABLE(MPI_T_pvar_handle const, all_handles,
                "MPI_T_PVAR_ALL_HANDLES") = MPI_T_PVAR_ALL_HANDLES;
GANTRY_VARIABLE(theirs::Status*, f08_ignore, "MPI_F08_STATUS_IGNORE") = &ignored;
GANTRY_VARIABLE(theirs::Status*, f08_ignore_all, "MPI_F08_STATUSES_IGNORE") = &all_ignored;

// MPI_DUP_FN, MPI_COMM_DUP_FN and so on.
GANTRY_COPY_FUNCTION(duplicate, "MPIR_Dup_fn", int, 1)

}  // namespace gantry::personality

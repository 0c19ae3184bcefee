// SPDX-License-Identifier: BSD-3-Clause
//
// Open MPI's predefined attribute functions, which programs pass to MPI_Comm_create_keyval and so on
// (an attribute is copied as it is, or not at all), and the statuses that Fortran ignores.
#include "theirs.hpp"

#define GANTRY_COPY(name, copies)                                               \
    int copy_##name(void*, int, void*, void* in, void* out, int* flag) __asm__( \
        "OMPI_C_MPI_" #name) __attribute__((visibility("default")));            \
    int copy_##name(void*, int, void*, void* in, void* out, int* flag) {        \
        if (copies != 0) *static_cast<void**>(out) = in;                        \
        *flag = copies;                                                         \
        return 0;                                                               \
    }
#define GANTRY_DELETE(name)                                                  \
    int delete_##name(void*, int, void*, void*) __asm__("OMPI_C_MPI_" #name) \
        __attribute__((visibility("default")));                              \
    int delete_##name(void*, int, void*, void*) {                            \
        return 0;                                                            \
    }

namespace gantry::personality {

GANTRY_COPY(DUP_FN, 1)
GANTRY_COPY(COMM_DUP_FN, 1)
GANTRY_COPY(TYPE_DUP_FN, 1)
GANTRY_COPY(WIN_DUP_FN, 1)
GANTRY_COPY(NULL_COPY_FN, 0)
GANTRY_COPY(COMM_NULL_COPY_FN, 0)
GANTRY_COPY(TYPE_NULL_COPY_FN, 0)
GANTRY_COPY(WIN_NULL_COPY_FN, 0)
GANTRY_DELETE(NULL_DELETE_FN)
GANTRY_DELETE(COMM_NULL_DELETE_FN)
GANTRY_DELETE(TYPE_NULL_DELETE_FN)
GANTRY_DELETE(WIN_NULL_DELETE_FN)

namespace {

theirs::Status fortran_status, fortran_statuses;

}  // namespace

// Programs name them as variables.
extern int* f_ignore __asm__("MPI_F_STATUS_IGNORE") __attribute__((visibility("default")));
extern int* f_ignore_all __asm__("MPI_F_STATUSES_IGNORE") __attribute__((visibility("default")));
int* f_ignore = &fortran_status.MPI_SOURCE;
int* f_ignore_all = &fortran_statuses.MPI_SOURCE;

}  // namespace gantry::personality

// SPDX-License-Identifier: BSD-3-Clause
//
// Open MPI's predefined attribute functions, which programs pass to MPI_Comm_create_keyval and so on.
#include "common/export.hpp"
#include "theirs.hpp"

#define GANTRY_COPY(name, copies) \
    GANTRY_COPY_FUNCTION(copy_##name, "OMPI_C_MPI_" #name, void*, copies)
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

}  // namespace gantry::personality

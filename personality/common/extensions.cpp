// SPDX-License-Identifier: BSD-3-Clause
//
// Extensions of both MPIs: what programs ask about GPUs. What Gantry has nothing for (NAME/not_built.def)
// says so, and fails.
#include "common/extensions.hpp"

#include "common/standard.hpp"

#include <cstdio>

namespace gantry::personality {
namespace {

// Not used where an MPI has no such extension.
[[maybe_unused]] int not_built(const char* name) {
    std::fprintf(stderr, "gantry: %s is an extension of another MPI that Gantry does not have\n",
                 name);
    return error(MPI_ERR_UNSUPPORTED_OPERATION);
}

}  // namespace

int supports(int kind) {
    int supported = 0;
    return standard.GPU_query_support(kind, &supported) == MPI_SUCCESS ? supported : 0;
}

GANTRY_EXTENSION(int, Query_cuda_support, (void)) {
    return standard.Query_cuda_support();
}

#define X(name)                           \
    GANTRY_EXTENSION(int, name, (void)) { \
        return not_built("MPIX_" #name);  \
    }
#include "not_built.def"
#undef X

}  // namespace gantry::personality

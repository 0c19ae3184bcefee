// SPDX-License-Identifier: BSD-3-Clause
//
// Extensions that both MPIs have.
#include "common/extensions.hpp"

#include "common/standard.hpp"

#include <cstdio>

namespace gantry::personality {

int not_built(const char* name) {
    std::fprintf(stderr, "gantry: %s is an extension of another MPI that Gantry does not have\n",
                 name);
    return error(MPI_ERR_UNSUPPORTED_OPERATION);
}

GANTRY_EXTENSION(int, Query_cuda_support, (void)) {
    return standard.Query_cuda_support();
}

}  // namespace gantry::personality

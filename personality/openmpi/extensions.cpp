// SPDX-License-Identifier: BSD-3-Clause
//
// Open MPI's extensions: what programs ask about GPUs.
#include "common/extensions.hpp"
#include "common/standard.hpp"

namespace gantry::personality {

GANTRY_EXTENSION(int, Query_rocm_support, (void)) {
    int supported = 0;
    standard.GPU_query_support(MPIX_GPU_SUPPORT_HIP, &supported);
    return supported;
}

#define X(name) GANTRY_NOT_BUILT(name)
#include "not_built.def"
#undef X

}  // namespace gantry::personality

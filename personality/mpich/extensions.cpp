// SPDX-License-Identifier: BSD-3-Clause
//
// MPICH's extensions: what programs ask about GPUs.
#include "common/extensions.hpp"
#include "common/standard.hpp"

namespace gantry::personality {
namespace {

int supports(int kind) {
    int supported = 0;
    return standard.GPU_query_support(kind, &supported) == MPI_SUCCESS ? supported : 0;
}

}  // namespace

GANTRY_EXTENSION(int, Query_ze_support, (void)) {
    return supports(MPIX_GPU_SUPPORT_ZE);
}
GANTRY_EXTENSION(int, Query_hip_support, (void)) {
    return supports(MPIX_GPU_SUPPORT_HIP);
}
GANTRY_EXTENSION(int, GPU_query_support, (int kind, int* supported)) {
    return error(standard.GPU_query_support(kind, supported));
}

#define X(name) GANTRY_NOT_BUILT(name)
#include "not_built.def"
#undef X

}  // namespace gantry::personality

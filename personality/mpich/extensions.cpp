// SPDX-License-Identifier: BSD-3-Clause
//
// MPICH's own questions about GPUs.
#include "common/extensions.hpp"
#include "common/standard.hpp"

namespace gantry::personality {

GANTRY_EXTENSION(int, Query_ze_support, (void)) {
    return supports(MPIX_GPU_SUPPORT_ZE);
}
GANTRY_EXTENSION(int, Query_hip_support, (void)) {
    return supports(MPIX_GPU_SUPPORT_HIP);
}
GANTRY_EXTENSION(int, GPU_query_support, (int kind, int* supported)) {
    return error(standard.GPU_query_support(kind, supported));
}

}  // namespace gantry::personality

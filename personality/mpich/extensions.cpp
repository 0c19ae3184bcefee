// SPDX-License-Identifier: BSD-3-Clause
//
// MPICH's extensions. Programs ask about GPUs; what Gantry has nothing for says so and fails.
#include "common/arguments.hpp"
#include "common/standard.hpp"

#include <cstdio>

#define GANTRY_EXTENSION(result, name, parameters)                                         \
    result name parameters __asm__("PMPIX_" #name) __attribute__((visibility("default"))); \
    result weak_##name parameters __asm__("MPIX_" #name)                                   \
        __attribute__((weak, alias("PMPIX_" #name), visibility("default")));               \
    result name parameters

namespace gantry::personality {

GANTRY_EXTENSION(int, Query_cuda_support, (void)) {
    return standard.Query_cuda_support();
}
GANTRY_EXTENSION(int, Query_ze_support, (void)) {
    int supported = 0;
    standard.GPU_query_support(MPIX_GPU_SUPPORT_ZE, &supported);
    return supported;
}
GANTRY_EXTENSION(int, Query_hip_support, (void)) {
    int supported = 0;
    standard.GPU_query_support(MPIX_GPU_SUPPORT_HIP, &supported);
    return supported;
}
GANTRY_EXTENSION(int, GPU_query_support, (int kind, int* supported)) {
    return error(standard.GPU_query_support(kind, supported));
}

#define X(name)                                                                          \
    GANTRY_EXTENSION(int, name, (void)) {                                                \
        std::fprintf(stderr, "gantry: MPIX_" #name                                       \
                             " is an extension of MPICH's that Gantry does not have\n"); \
        return error(MPI_ERR_UNSUPPORTED_OPERATION);                                     \
    }
#include "not_built.def"
#undef X

}  // namespace gantry::personality

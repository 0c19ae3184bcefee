// SPDX-License-Identifier: BSD-3-Clause
//
// Open MPI's own question about GPUs.
#include "common/extensions.hpp"
#include "common/standard.hpp"

namespace gantry::personality {

GANTRY_EXTENSION(int, Query_rocm_support, (void)) {
    return supports(MPIX_GPU_SUPPORT_HIP);
}

}  // namespace gantry::personality

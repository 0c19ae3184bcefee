// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions of real and complex numbers (reduce_loops.hpp).
#include "reduce_loops.hpp"

namespace gantry::kernels {

GANTRY_REDUCE_REALS(GANTRY_REDUCE_KERNEL)

}  // namespace gantry::kernels

// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions of what is used rarely: pairs of a value and an index, and integers of 128 bits
// (reduce_loops.hpp).
#include "reduce_loops.hpp"

namespace gantry::kernels {

GANTRY_REDUCE_PAIRS(GANTRY_REDUCE_KERNEL)

}  // namespace gantry::kernels

// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions of integers and of bits (reduce_loops.hpp).
#include "reduce_loops.hpp"

namespace gantry::kernels {

GANTRY_REDUCE_INTEGERS(GANTRY_REDUCE_KERNEL)

// Units as wide as all vectors allow, and the bytes behind them.
GANTRY_KERNEL void gantry_reduce_bits(ReduceWork work) {
    const Word odd = alignment_of_all(work);
    const Word whole = odd % 4 == 0 ? work.count & ~Word{3} : 0;
    if (whole > 0) reduce_all<Bits<unsigned>>(work, {0, whole / 4}, odd);
    if (whole < work.count) reduce_all<Bits<unsigned char>>(work, {whole, work.count - whole}, odd);
}

}  // namespace gantry::kernels

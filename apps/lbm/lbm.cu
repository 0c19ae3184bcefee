// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of a step, in doubles and in floats. One thread: one cell of the region, then the one a
// grid's width further; neighbours along x are neighbouring threads.
#include "kernels.hpp"

namespace gantry::apps::lbm {

APPS_KERNEL(lbm_collide_double, Work<double>, collide)
APPS_KERNEL(lbm_stream_double, Work<double>, stream)
APPS_KERNEL(lbm_sum_double, Work<double>, sum)
APPS_KERNEL(lbm_collide_float, Work<float>, collide)
APPS_KERNEL(lbm_stream_float, Work<float>, stream)
APPS_KERNEL(lbm_sum_float, Work<float>, sum)

}  // namespace gantry::apps::lbm

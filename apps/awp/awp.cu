// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels of a step. One thread: one cell of the region, then the one a grid's width further;
// neighbours along x are neighbouring threads.
#include "kernels.hpp"

namespace gantry::apps::awp {

APPS_KERNEL(awp_velocity, Work, velocity)
APPS_KERNEL(awp_stress, Work, stress)
APPS_KERNEL(awp_source, SourceWork, source)
APPS_KERNEL(awp_record, RecordWork, record)

}  // namespace gantry::apps::awp

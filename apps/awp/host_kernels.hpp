// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels for the host: what --memory host calls, and the simulated GPU.
#pragma once

#include "../common/kernel.hpp"

namespace gantry::apps::awp {

extern const Kernel kVelocityKernel, kStressKernel, kSourceKernel, kRecordKernel;

}  // namespace gantry::apps::awp

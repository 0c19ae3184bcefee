// SPDX-License-Identifier: BSD-3-Clause
#include "host_kernels.hpp"

#include "kernels.hpp"

namespace gantry::apps::awp {
namespace {

// Values that a cell reads and writes.
constexpr Whole kVelocityValues = kStresses + 2 * kVelocities + 1;
constexpr Whole kStressValues = kVelocities + 2 * kStresses + 2;

}  // namespace

const Kernel kVelocityKernel = kernel_of<Work, velocity>("awp_velocity", 4 * kVelocityValues);
const Kernel kStressKernel = kernel_of<Work, stress>("awp_stress", 4 * kStressValues);
const Kernel kSourceKernel = kernel_of<SourceWork, source>("awp_source", 8);
const Kernel kRecordKernel = kernel_of<RecordWork, record>("awp_record", 8);

}  // namespace gantry::apps::awp

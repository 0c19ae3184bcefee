// SPDX-License-Identifier: BSD-3-Clause
#include "host_kernels.hpp"

#include "kernels.hpp"

namespace gantry::apps::lbm {
namespace {

// Values that a cell reads and writes.
constexpr Whole kCollide = 2 * (2 + kAxial + kMoving) + 1, kStream = 3 * kAxial, kSum = 2 + kAxial;

}  // namespace

const Kernel kCollideDouble =
    kernel_of<Work<double>, collide<double>>("lbm_collide_double", 8 * kCollide);
const Kernel kStreamDouble =
    kernel_of<Work<double>, stream<double>>("lbm_stream_double", 8 * kStream);
const Kernel kSumDouble = kernel_of<Work<double>, sum<double>>("lbm_sum_double", 8 * kSum);
const Kernel kCollideFloat =
    kernel_of<Work<float>, collide<float>>("lbm_collide_float", 4 * kCollide);
const Kernel kStreamFloat = kernel_of<Work<float>, stream<float>>("lbm_stream_float", 4 * kStream);
const Kernel kSumFloat = kernel_of<Work<float>, sum<float>>("lbm_sum_float", 4 * kSum);

}  // namespace gantry::apps::lbm

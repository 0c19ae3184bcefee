// SPDX-License-Identifier: BSD-3-Clause
//
// Entry points named MPIX_x: those of the other MPI beyond the standard.
#pragma once

#include "common/arguments.hpp"

#define GANTRY_EXTENSION(result, name, parameters)                                         \
    result name parameters __asm__("PMPIX_" #name) __attribute__((visibility("default"))); \
    result weak_##name parameters __asm__("MPIX_" #name)                                   \
        __attribute__((weak, alias("PMPIX_" #name), visibility("default")));               \
    result name parameters

namespace gantry::personality {

// Whether pointers of that kind of GPU (MPIX_GPU_SUPPORT_*) may be passed: 1 or 0.
int supports(int kind);

}  // namespace gantry::personality

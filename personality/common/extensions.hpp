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

// What Gantry has nothing for says so, and fails.
int not_built(const char* name);

}  // namespace gantry::personality

#define GANTRY_NOT_BUILT(name)            \
    GANTRY_EXTENSION(int, name, (void)) { \
        return not_built("MPIX_" #name);  \
    }

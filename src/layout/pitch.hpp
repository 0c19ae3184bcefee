// SPDX-License-Identifier: BSD-3-Clause
//
// Which distances a copy engine takes between rows.
#pragma once

#include "base/units.hpp"

#include <cstddef>

namespace gantry::layout {

// CU_DEVICE_ATTRIBUTE_MAX_PITCH
inline constexpr Bytes kLargestPitch = 0x7fffffff;

// Upwards, and rows of that width do not overlap.
inline bool is_pitch(std::ptrdiff_t distance, Bytes width) {
    return distance >= static_cast<std::ptrdiff_t>(width) &&
           distance <= static_cast<std::ptrdiff_t>(kLargestPitch);
}

}  // namespace gantry::layout

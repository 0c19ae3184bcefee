// SPDX-License-Identifier: BSD-3-Clause
//
// What travels after the velocities are computed, axis by axis (simulation.hpp), in any decomposition.
#pragma once

#include "../common/pattern.hpp"

namespace gantry::apps::awp {

inline constexpr Whole kHalo = 4, kReach = 2;

// Planes of these fields, one pattern an axis: a later one's include the halos that came before.
std::vector<Pattern> patterns_along_axes(const Grid& grid, const Extent& extent,
                                         const std::vector<int>& which);

}  // namespace gantry::apps::awp

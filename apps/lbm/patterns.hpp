// SPDX-License-Identifier: BSD-3-Clause
//
// What crosses to the neighbours in each phase of a step (simulation.hpp), as rules for any decomposition.
#pragma once

#include "../common/pattern.hpp"
#include "velocities.hpp"

namespace gantry::apps::lbm {

inline constexpr Whole kHalo = 1;
inline constexpr int kPhi = 0, kF0 = 1, kG0 = 2;
// Fields that move, i from 1 on; `level` 0 or 1.
constexpr int f_field(int level, int i) {
    return 3 + kAxial * level + (i - 1);
}
constexpr int g_field(int level, int i) {
    return 3 + 2 * kAxial + kMoving * level + (i - 1);
}
inline constexpr int kFields = 3 + 2 * kAxial + 2 * kMoving;

// My first plane of the f that move away from a neighbour: he pushes them on into my block, and for
// that needs them beyond his last cell.
std::vector<Crossing> relax_crossings(int level);
// The f that were pushed beyond the edge.
std::vector<Crossing> move_crossings(int level);
// phi beside the edge, and the g that were pushed beyond it.
std::vector<Crossing> settle_crossings(int level);
// phi alone, at the start.
std::vector<Crossing> phi_crossings();

}  // namespace gantry::apps::lbm

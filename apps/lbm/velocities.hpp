// SPDX-License-Identifier: BSD-3-Clause
//
// The velocities: 0 stays; 1 to 6 along the axes (D3Q7, the order parameter's), 7 to 18 along the
// diagonals of two axes (with them D3Q19, the momentum's). Odd and even ones are opposite.
#pragma once

namespace gantry::apps::lbm {

inline constexpr int kAxial = 6, kMoving = 18;
inline constexpr int kVelocity[kMoving + 1][3] = {
    {0, 0, 0},  //
    {1, 0, 0},  {-1, 0, 0},  {0, 1, 0},  {0, -1, 0},  {0, 0, 1},  {0, 0, -1},
    {1, 1, 0},  {-1, -1, 0}, {1, -1, 0}, {-1, 1, 0},  {1, 0, 1},  {-1, 0, -1},
    {1, 0, -1}, {-1, 0, 1},  {0, 1, 1},  {0, -1, -1}, {0, 1, -1}, {0, -1, 1}};

}  // namespace gantry::apps::lbm

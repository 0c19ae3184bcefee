// SPDX-License-Identifier: BSD-3-Clause
#include "patterns.hpp"

namespace gantry::apps::lbm {
namespace {

Crossing crossing(int field, const int way[3], int sign, Direction direction) {
    return {field, {sign * way[0], sign * way[1], sign * way[2]}, direction, {}};
}

// g crosses a face if it moves that way, an edge if it moves along just this diagonal.
bool crosses(int i, const int way[3]) {
    int along = 0, length = 0;
    for (int a = 0; a < 3; ++a) {
        along += way[a] * kVelocity[i][a];
        length += way[a] * way[a];
    }
    return along == length;
}

}  // namespace

std::vector<Crossing> relax_crossings(int level) {
    std::vector<Crossing> all;
    for (int i = 1; i <= kAxial; ++i)
        all.push_back(crossing(f_field(level, i), kVelocity[i], -1, Direction::own_to_halo));
    return all;
}

std::vector<Crossing> move_crossings(int level) {
    std::vector<Crossing> all;
    for (int i = 1; i <= kAxial; ++i)
        all.push_back(crossing(f_field(level, i), kVelocity[i], 1, Direction::halo_to_own));
    return all;
}

std::vector<Crossing> settle_crossings(int level) {
    std::vector<Crossing> all;
    for (int w = 1; w <= kMoving; ++w) {
        all.push_back(crossing(kPhi, kVelocity[w], 1, Direction::own_to_halo));
        for (int i = 1; i <= kMoving; ++i) {
            if (!crosses(i, kVelocity[w])) continue;
            Crossing g = crossing(g_field(level, i), kVelocity[w], 1, Direction::halo_to_own);
            for (int a = 0; a < 3; ++a)
                g.moved[a] = kVelocity[i][a];
            all.push_back(g);
        }
    }
    return all;
}

std::vector<Crossing> phi_crossings() {
    std::vector<Crossing> all;
    for (int w = 1; w <= kMoving; ++w)
        all.push_back(crossing(kPhi, kVelocity[w], 1, Direction::own_to_halo));
    return all;
}

}  // namespace gantry::apps::lbm

// SPDX-License-Identifier: BSD-3-Clause
#include "patterns.hpp"

namespace gantry::apps::awp {

std::vector<Pattern> patterns_along_axes(const Grid& grid, const Extent& extent,
                                         const std::vector<int>& which) {
    std::vector<Pattern> all;
    // An axis that is not divided has nothing beyond: with it a plane is contiguous.
    bool ready[3] = {!grid.divided(0), !grid.divided(1), !grid.divided(2)};
    for (const int axis : {1, 2, 0}) {
        if (!grid.divided(axis)) continue;
        all.push_back(planes_along(grid, extent, axis, kHalo, which, ready));
        ready[axis] = true;
    }
    return all;
}

}  // namespace gantry::apps::awp

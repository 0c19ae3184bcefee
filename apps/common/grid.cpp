// SPDX-License-Identifier: BSD-3-Clause
#include "grid.hpp"

namespace gantry::apps {

std::string sizes(const Whole n[3]) {
    return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]);
}

int Grid::neighbour(const int way[3]) const {
    int there[3];
    for (int axis = 0; axis < 3; ++axis) {
        there[axis] = coords[axis] + way[axis];
        if (there[axis] >= 0 && there[axis] < dims[axis]) continue;
        if (!periodic) return MPI_PROC_NULL;
        there[axis] = (there[axis] + dims[axis]) % dims[axis];
    }
    return (there[0] * dims[1] + there[1]) * dims[2] + there[2];  // as MPI numbers a Cartesian grid
}

std::string Grid::words() const {
    const Whole d[3] = {dims[0], dims[1], dims[2]};
    return sizes(d) + " ranks of " + sizes(local) + " cells";
}

}  // namespace gantry::apps

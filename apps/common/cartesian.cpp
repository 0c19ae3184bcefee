// SPDX-License-Identifier: BSD-3-Clause
//
// make_grid: what of a grid takes MPI, and the options that can be wrong.
#include "grid.hpp"

#include "mistake.hpp"

#include <cstdio>

namespace gantry::apps {
namespace {

void divide(const Shape& shape, int ranks, int dims[3]) {
    const bool slabs = shape.words == "1d", pencils = shape.words == "2d";
    if (slabs || pencils || shape.words == "3d") {
        for (int axis = 0; axis < 3; ++axis) {
            const bool whole = (slabs && axis != shape.slab_axis) ||
                               ((slabs || pencils) && axis == shape.whole_axis);
            dims[axis] = whole ? 1 : 0;
        }
        MPI_Dims_create(ranks, 3, dims);
        return;
    }
    char rest = 0;
    if (std::sscanf(shape.words.c_str(), "%dx%dx%d%c", &dims[0], &dims[1], &dims[2], &rest) != 3 ||
        dims[0] < 1 || dims[1] < 1 || dims[2] < 1)
        throw Mistake("--decomposition " + shape.words +
                      " is none: say 1d, 2d, 3d, or the ranks along each axis, as in 2x1x4");
    if (Whole{dims[0]} * dims[1] * dims[2] != ranks)
        throw Mistake("--decomposition " + shape.words + " is for " +
                      std::to_string(Whole{dims[0]} * dims[1] * dims[2]) +
                      " ranks, and there are " + std::to_string(ranks));
}

}  // namespace

Grid make_grid(MPI_Comm all, const Whole global[3], const Shape& shape, bool periodic,
               Whole least) {
    Grid grid;
    MPI_Comm_size(all, &grid.ranks);
    divide(shape, grid.ranks, grid.dims);
    for (int axis = 0; axis < 3; ++axis) {
        const std::string name(1, "xyz"[axis]);
        if (global[axis] < 1)
            throw Mistake("--cells " + sizes(global) + ": each must be 1 or more");
        if (global[axis] % grid.dims[axis] != 0)
            throw Mistake("--cells " + sizes(global) + ": " + std::to_string(global[axis]) +
                          " along " + name + " cannot be divided among " +
                          std::to_string(grid.dims[axis]) +
                          " ranks; use a multiple, or another --decomposition");
        grid.global[axis] = global[axis];
        grid.local[axis] = global[axis] / grid.dims[axis];
        if (grid.local[axis] < least && (periodic || grid.dims[axis] > 1))
            throw Mistake("--cells " + sizes(global) + ": a block would have " +
                          std::to_string(grid.local[axis]) + " cells along " + name +
                          ", and its halo needs " + std::to_string(least) +
                          "; use fewer ranks or more cells");
    }
    // Products of two fit Whole; a place in a block is a 32-bit number in the kernels.
    const double cells = static_cast<double>(grid.local[0] + 8) *
                         static_cast<double>(grid.local[1] + 8) *
                         static_cast<double>(grid.local[2] + 8);
    if (cells > 2147483647.)
        throw Mistake("--cells " + sizes(global) + ": a block of " + sizes(grid.local) +
                      " has more than 2147483647 cells; use more ranks");
    const int periods[3] = {periodic, periodic, periodic};
    MPI_Cart_create(all, 3, grid.dims, periods, 1, &grid.comm);
    MPI_Comm_rank(grid.comm, &grid.rank);
    MPI_Cart_coords(grid.comm, grid.rank, 3, grid.coords);
    grid.periodic = periodic;
    return grid;
}

}  // namespace gantry::apps

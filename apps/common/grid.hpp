// SPDX-License-Identifier: BSD-3-Clause
//
// How the cells are shared out: a Cartesian grid of ranks, each with a block of the same size.
#pragma once

#include "cells.hpp"

#include <mpi.h>

#include <string>

namespace gantry::apps {

struct Grid {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0, ranks = 1;
    int dims[3] = {1, 1, 1}, coords[3] = {0, 0, 0};
    Whole global[3] = {}, local[3] = {};
    bool periodic = false;

    bool divided(int axis) const { return dims[axis] > 1; }
    Whole first(int axis) const { return coords[axis] * local[axis]; }
    // The rank that way (each -1, 0 or 1), or MPI_PROC_NULL beyond the end.
    int neighbour(const int way[3]) const;
    std::string words() const;  // "2 x 1 x 2 ranks of 64 x 128 x 64 cells"
};

std::string sizes(const Whole n[3]);  // "64 x 128 x 64"

// `shape`: "1d" slabs along `slab_axis`, "2d" all axes but `whole_axis`, "3d", or "AxBxC" ranks along each.
struct Shape {
    std::string words;
    int slab_axis = 2, whole_axis = -1;
};
// `least`: the fewest cells a block may have along an axis that is divided. Mistakes are thrown.
Grid make_grid(MPI_Comm all, const Whole global[3], const Shape& shape, bool periodic, Whole least);

}  // namespace gantry::apps

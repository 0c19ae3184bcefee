// SPDX-License-Identifier: BSD-3-Clause
//
// The periodic 3D grid of all ranks, with whose neighbours operations exchange.
#pragma once

#include <mpi.h>

#include <vector>

namespace gantry::bench {

inline constexpr int kDimensions = 3;

// Ranks are those of MPI_COMM_WORLD. The caller frees it.
inline MPI_Comm grid_of_all_ranks() {
    int ranks = 0, sizes[kDimensions] = {}, periodic[kDimensions] = {1, 1, 1};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, kDimensions, sizes);
    MPI_Comm grid = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, kDimensions, sizes, periodic, 0, &grid);
    return grid;
}

// Low and high neighbour in each dimension, as neighbourhood collectives number them.
inline std::vector<int> neighbors_in_grid() {
    MPI_Comm grid = grid_of_all_ranks();
    std::vector<int> neighbors(2 * kDimensions);
    for (int dimension = 0; dimension < kDimensions; ++dimension) {
        const auto low = static_cast<std::size_t>(2 * dimension);
        MPI_Cart_shift(grid, dimension, 1, &neighbors[low], &neighbors[low + 1]);
    }
    MPI_Comm_free(&grid);
    return neighbors;
}

}  // namespace gantry::bench

// SPDX-License-Identifier: BSD-3-Clause
//
// Cartesian: the arithmetic of a grid of processes. Ranks are numbered row by row: the last
// coordinate changes fastest (MPI 5.0 section 8.2). A grid without dimensions has one process.
#pragma once

#include "base/status.hpp"
#include "coll/neighbor_exchange.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::mpi {

struct Cartesian {
    std::vector<int> dims;
    std::vector<int> periods;  // 0 or 1

    int dimensions() const { return static_cast<int>(dims.size()); }
    // The number of processes; make_grid has seen to it that an int holds the product.
    int size() const;
    void coordinates(int rank, int* coords) const;
    // Every coordinate is inside the grid, or is brought there in a dimension that is periodic.
    Result<int> rank_at(const int* coords) const;
    // The rank that is `steps` away along one dimension; MPI_PROC_NULL beyond an end.
    int neighbor(int rank, int dimension, std::int64_t steps) const;
    // One step back and one step forth along every dimension, in this order.
    coll::Neighbors neighbors(int rank) const;
    // "4 x 2 x 3", for sentences.
    std::string text() const;
};

// Judges what a program passes. The grid has at most `processes` ranks.
Result<Cartesian> make_grid(int ndims, const int* dims, const int* periods, int processes);

}  // namespace gantry::mpi

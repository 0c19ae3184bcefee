// SPDX-License-Identifier: BSD-3-Clause
//
// Reordering a grid: which process takes which position, so that neighbors in the grid share a node
// where they can. Every rank computes the same answer from what all know, the node of each process.
#pragma once

#include "mpi/topo/cartesian.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gantry::mpi {

struct Arrangement {
    std::vector<int> process_at;  // position in the grid -> rank in the old communicator
    std::string how;              // "blocks of 2 x 4 on each node"
    // Pairs of neighbors in the grid, those of them on two nodes, and how many of them are on two
    // nodes when everybody keeps its rank.
    std::int64_t pairs = 0, apart = 0, apart_in_rank_order = 0;

    // One line for the log.
    std::string text(const Cartesian& grid) const;
    // Of a rank in the old communicator; MPI_UNDEFINED for one that has none.
    int position_of(int process) const;
};

// Everybody keeps its rank.
Arrangement keep_ranks(const Cartesian& grid, std::string why);

// For the processes 0 to grid.size() - 1 of the old communicator; `node_of` gives the node of each.
Arrangement arrange_by_node(const Cartesian& grid, std::span<const int> node_of);

}  // namespace gantry::mpi

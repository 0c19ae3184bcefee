// SPDX-License-Identifier: BSD-3-Clause
//
// The edges of a distributed graph, named by anybody, brought to the two ranks that they join.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"

#include <vector>

namespace gantry::coll {

// On the wire between ranks of one job.
struct Edge {
    int source, destination, weight;
};

// The edges of one rank, those that end there and those that begin there. Two edges between the
// same ranks stand in the same order in the lists of both.
struct Adjacency {
    std::vector<int> sources, source_weights;
    std::vector<int> destinations, destination_weights;
    bool weighted = false;
};

// `weighted` must be equal on all ranks that name an edge; when it is not, all ranks get an error.
Task<Status> share_edges(Executor& executor, Team team, std::vector<Edge> named, bool weighted,
                         Adjacency* mine);

}  // namespace gantry::coll

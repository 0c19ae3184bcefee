// SPDX-License-Identifier: BSD-3-Clause
//
// What a program asks a distributed graph: this process's own edges.
#include "mpi/bodies.hpp"
#include "mpi/topo/topology.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

// The first part of a list, as much as there is room for.
void copy_first(const std::vector<int>& list, int most, int* to) {
    const std::size_t number = std::min(list.size(), static_cast<std::size_t>(most));
    std::copy_n(list.begin(), number, to);
}

// An array that weights are written to.
Status check_weights(const char* name, const int* weights, std::size_t number) {
    if (number == 0 ||
        (weights != nullptr && weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY))
        return success();
    return failure(MPI_ERR_ARG,
                   "argument {} is no array, but the graph has weights "
                   "(MPI_Dist_graph_neighbors_count tells)",
                   name);
}

}  // namespace

Status dist_graph_neighbors_count(Comm& comm, int* indegree, int* outdegree, int* weighted) {
    Result<const DistGraph*> graph = dist_graph_of(comm);
    if (!graph.ok()) return std::move(graph).status();
    *indegree = blocks_in(comm);
    *outdegree = blocks_out(comm);
    *weighted = (*graph)->weighted ? 1 : 0;
    return success();
}

Status dist_graph_neighbors(Comm& comm, int maxindegree, int* sources, int* sourceweights,
                            int maxoutdegree, int* destinations, int* destweights) {
    Result<const DistGraph*> found = dist_graph_of(comm);
    if (!found.ok()) return std::move(found).status();
    const DistGraph& graph = **found;
    const auto most_in =
        std::min(static_cast<std::size_t>(maxindegree), graph.source_weights.size());
    const auto most_out =
        std::min(static_cast<std::size_t>(maxoutdegree), graph.destination_weights.size());
    GANTRY_TRY(check_weights("sourceweights", sourceweights, most_in));
    GANTRY_TRY(check_weights("destweights", destweights, most_out));
    const coll::Neighbors& neighbors = *comm.topology->neighbors;
    copy_first(neighbors.sources, maxindegree, sources);
    copy_first(neighbors.destinations, maxoutdegree, destinations);
    std::copy_n(graph.source_weights.begin(), most_in, sourceweights);
    std::copy_n(graph.destination_weights.begin(), most_out, destweights);
    return success();
}

}  // namespace gantry::mpi

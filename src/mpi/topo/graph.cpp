// SPDX-License-Identifier: BSD-3-Clause
//
// Graphs that every process knows whole (MPI 5.0 sections 8.5.3 and 8.5.5). Ranks keep their order,
// also when the program allows another one.
#include "base/log.hpp"
#include "base/room.hpp"
#include "mpi/bodies.hpp"
#include "mpi/comm/among.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/topo/topology.hpp"

#include <algorithm>
#include <span>

namespace gantry::mpi {
namespace {

// The number of edges of a graph that is well described.
Result<int> check_graph(const Comm& comm, int nnodes, const int* index, const int* edges) {
    if (nnodes < 0)
        return failure(MPI_ERR_ARG, "argument nnodes is {} and must not be negative", nnodes);
    if (nnodes > comm.size())
        return failure(MPI_ERR_ARG,
                       "argument nnodes is {} and must be at most {}, the number of processes of "
                       "the communicator",
                       nnodes, comm.size());
    int end = 0;
    for (int node = 0; node < nnodes; ++node) {
        if (index[node] < end)
            return failure(MPI_ERR_ARG,
                           "argument index[{}] is {} and must be at least {}: it is the number of "
                           "edges of the nodes 0 to {}",
                           node, index[node], end, node);
        end = index[node];
    }
    if (edges == nullptr && end > 0)
        return failure(MPI_ERR_ARG, "argument edges is a null pointer");
    for (int i = 0; i < end; ++i)
        if (edges[i] < 0 || edges[i] >= nnodes)
            return failure(MPI_ERR_ARG, "argument edges[{}] is {} and must lie between 0 and {}", i,
                           edges[i], nnodes - 1);
    return end;
}

Status check_array(const char* name, int elements, std::size_t needed, const char* call) {
    if (static_cast<std::size_t>(elements) >= needed) return success();
    return failure(MPI_ERR_ARG, "argument {} is {} and must be at least {} ({})", name, elements,
                   needed, call);
}

std::span<const int> neighbors_in(const Graph& graph, int rank) {
    return std::span(graph.edges)
        .subspan(static_cast<std::size_t>(graph.begin(rank)),
                 static_cast<std::size_t>(graph.degree(rank)));
}

}  // namespace

Pending graph_create(Comm& comm_old, int nnodes, const int* index, const int* edges, int reorder,
                     MPI_Comm* comm_graph) {
    const coll::Team everybody = comm_old.team();
    *comm_graph = MPI_COMM_NULL;
    Result<int> number = check_graph(comm_old, nnodes, index, edges);
    if (!number.ok()) return std::move(number).status();
    // The edges, and this process's neighbors in two lists.
    GANTRY_TRY(check_room(static_cast<std::uint64_t>(*number), 3 * sizeof(int)));
    if (reorder != 0 && comm_old.rank() == 0)
        log::info("topo: graph of {} processes: ranks keep their order", nnodes);
    Members members;
    members.peers.assign(comm_old.group.peers.begin(), comm_old.group.peers.begin() + nnodes);
    std::shared_ptr<const Topology> topology;
    if (comm_old.rank() < nnodes) {
        members.rank = comm_old.rank();
        Graph graph;
        graph.index.assign(index, index + nnodes);
        graph.edges.assign(edges, edges + *number);
        coll::Neighbors neighbors;
        const std::span<const int> mine = neighbors_in(graph, members.rank);
        neighbors.sources.assign(mine.begin(), mine.end());
        neighbors.destinations = neighbors.sources;
        topology = make_topology(std::move(graph), std::move(neighbors));
    }
    std::vector<int> named(index, index + nnodes);
    named.insert(named.end(), edges, edges + *number);
    const Agreement said = Agreement(comm_old, "MPI_Graph_create").names("index and edges", named);
    return make_agreed(comm_old, said, std::move(members), everybody, std::move(topology),
                       comm_graph);
}

Status graph_map(Comm& comm, int nnodes, const int* index, const int* edges, int* newrank) {
    Result<int> number = check_graph(comm, nnodes, index, edges);
    if (!number.ok()) return std::move(number).status();
    *newrank = comm.rank() < nnodes ? comm.rank() : MPI_UNDEFINED;
    return success();
}

Status graphdims_get(Comm& comm, int* nnodes, int* nedges) {
    Result<const Graph*> graph = graph_of(comm);
    if (!graph.ok()) return std::move(graph).status();
    *nnodes = static_cast<int>((*graph)->index.size());
    *nedges = static_cast<int>((*graph)->edges.size());
    return success();
}

Status graph_get(Comm& comm, int maxindex, int maxedges, int* index, int* edges) {
    Result<const Graph*> graph = graph_of(comm);
    if (!graph.ok()) return std::move(graph).status();
    GANTRY_TRY(check_array("maxindex", maxindex, (*graph)->index.size(), "MPI_Graphdims_get"));
    GANTRY_TRY(check_array("maxedges", maxedges, (*graph)->edges.size(), "MPI_Graphdims_get"));
    std::copy((*graph)->index.begin(), (*graph)->index.end(), index);
    std::copy((*graph)->edges.begin(), (*graph)->edges.end(), edges);
    return success();
}

Status graph_neighbors_count(Comm& comm, int rank, int* nneighbors) {
    Result<const Graph*> graph = graph_of(comm);
    if (!graph.ok()) return std::move(graph).status();
    *nneighbors = (*graph)->degree(rank);
    return success();
}

Status graph_neighbors(Comm& comm, int rank, int maxneighbors, int* neighbors) {
    Result<const Graph*> graph = graph_of(comm);
    if (!graph.ok()) return std::move(graph).status();
    const std::span<const int> found = neighbors_in(**graph, rank);
    GANTRY_TRY(
        check_array("maxneighbors", maxneighbors, found.size(), "MPI_Graph_neighbors_count"));
    std::copy(found.begin(), found.end(), neighbors);
    return success();
}

}  // namespace gantry::mpi

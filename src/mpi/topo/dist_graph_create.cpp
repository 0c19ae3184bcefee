// SPDX-License-Identifier: BSD-3-Clause
//
// Making communicators with a graph of which every process knows its own edges (MPI 5.0 section
// 8.5.4). Ranks keep their order, also when the program allows another one.
#include "base/log.hpp"
#include "base/room.hpp"
#include "coll/graph_edges.hpp"
#include "mpi/bodies.hpp"
#include "mpi/comm/among.hpp"
#include "mpi/comm/context.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/topo/topology.hpp"

#include <numeric>

namespace gantry::mpi {
namespace {

Status check_ranks(const char* name, const int* ranks, std::int64_t number, const Comm& comm) {
    if (ranks == nullptr && number > 0)
        return failure(MPI_ERR_ARG, "argument {} is a null pointer", name);
    for (std::int64_t i = 0; i < number; ++i)
        if (ranks[i] != MPI_PROC_NULL && (ranks[i] < 0 || ranks[i] >= comm.size()))
            return failure(MPI_ERR_RANK,
                           "argument {}[{}] is {} and must lie between 0 and {}, or be "
                           "MPI_PROC_NULL",
                           name, i, ranks[i], comm.size() - 1);
    return success();
}

// MPI_UNWEIGHTED is judged by the caller.
Status check_weights(const char* name, const int* weights, std::int64_t number) {
    if (number == 0) return success();
    if (weights == MPI_WEIGHTS_EMPTY)
        return failure(MPI_ERR_ARG,
                       "argument {} is MPI_WEIGHTS_EMPTY, but there are {} edges: pass their "
                       "weights, or MPI_UNWEIGHTED on all ranks",
                       name, number);
    if (weights == nullptr)
        return failure(MPI_ERR_ARG,
                       "argument {} is a null pointer: without weights, pass "
                       "MPI_UNWEIGHTED on all ranks",
                       name);
    for (std::int64_t i = 0; i < number; ++i)
        if (weights[i] < 0)
            return failure(MPI_ERR_ARG, "argument {}[{}] is {} and must not be negative", name, i,
                           weights[i]);
    return success();
}

void say_order_kept(const Comm& comm, int reorder) {
    if (reorder != 0 && comm.rank() == 0)
        log::info("topo: distributed graph of {} processes: ranks keep their order", comm.size());
}

Members everybody(const Comm& comm) {
    return {comm.group.peers, comm.rank()};
}

std::shared_ptr<const Topology> topology_of(coll::Adjacency mine) {
    DistGraph graph;
    graph.weighted = mine.weighted;
    if (mine.weighted) {
        graph.source_weights = std::move(mine.source_weights);
        graph.destination_weights = std::move(mine.destination_weights);
    }
    coll::Neighbors neighbors;
    neighbors.sources = std::move(mine.sources);
    neighbors.destinations = std::move(mine.destinations);
    return make_topology(std::move(graph), std::move(neighbors));
}

Task<Status> share_and_make(Executor& executor, Comm* old, coll::Team team,
                            std::vector<coll::Edge> named, bool weighted, MPI_Comm* newcomm) {
    coll::Adjacency mine;
    Status shared = co_await coll::share_edges(executor, team, std::move(named), weighted, &mine);
    GANTRY_CO_TRY(shared);
    std::shared_ptr<const Topology> topology = topology_of(std::move(mine));
    Members members = everybody(*old);
    Status made =
        co_await make_member(executor, old, team, std::move(members), std::move(topology), newcomm);
    co_return made;
}

}  // namespace

Pending dist_graph_create_adjacent(Comm& comm_old, int indegree, const int* sources,
                                   const int* sourceweights, int outdegree, const int* destinations,
                                   const int* destweights, Info*, int reorder,
                                   MPI_Comm* comm_dist_graph) {
    const coll::Team everybody_old = comm_old.team();
    *comm_dist_graph = MPI_COMM_NULL;
    GANTRY_TRY(check_ranks("sources", sources, indegree, comm_old));
    GANTRY_TRY(check_ranks("destinations", destinations, outdegree, comm_old));
    const bool weighted = sourceweights != MPI_UNWEIGHTED;
    if (weighted != (destweights != MPI_UNWEIGHTED))
        return failure(MPI_ERR_ARG,
                       "argument {} is MPI_UNWEIGHTED and argument {} is not: pass it for both, or "
                       "for none (MPI_WEIGHTS_EMPTY where there is no edge)",
                       weighted ? "destweights" : "sourceweights",
                       weighted ? "sourceweights" : "destweights");
    if (weighted) {
        GANTRY_TRY(check_weights("sourceweights", sourceweights, indegree));
        GANTRY_TRY(check_weights("destweights", destweights, outdegree));
    }
    const std::uint64_t edges =
        static_cast<std::uint64_t>(indegree) + static_cast<std::uint64_t>(outdegree);
    GANTRY_TRY(check_room(edges, 2 * sizeof(int)));
    say_order_kept(comm_old, reorder);
    coll::Adjacency mine;
    mine.weighted = weighted;
    mine.sources.assign(sources, sources + indegree);
    mine.destinations.assign(destinations, destinations + outdegree);
    if (weighted) {
        if (indegree > 0) mine.source_weights.assign(sourceweights, sourceweights + indegree);
        if (outdegree > 0) mine.destination_weights.assign(destweights, destweights + outdegree);
    }
    return make_agreed(comm_old, Agreement(comm_old, "MPI_Dist_graph_create_adjacent"),
                       everybody(comm_old), everybody_old, topology_of(std::move(mine)),
                       comm_dist_graph);
}

Pending dist_graph_create(Comm& comm_old, int n, const int* sources, const int* degrees,
                          const int* destinations, const int* weights, Info*, int reorder,
                          MPI_Comm* comm_dist_graph) {
    const coll::Team team = comm_old.team();
    *comm_dist_graph = MPI_COMM_NULL;
    GANTRY_TRY(check_ranks("sources", sources, n, comm_old));
    const std::int64_t edges = std::accumulate(degrees, degrees + n, std::int64_t{0});
    GANTRY_TRY(check_ranks("destinations", destinations, edges, comm_old));
    const bool weighted = weights != MPI_UNWEIGHTED;
    if (weighted) GANTRY_TRY(check_weights("weights", weights, edges));
    // Every edge stands in the list of this rank, and goes to two others.
    GANTRY_TRY(check_room(static_cast<std::uint64_t>(edges), 3 * sizeof(coll::Edge)));
    say_order_kept(comm_old, reorder);
    std::vector<coll::Edge> named;
    named.reserve(static_cast<std::size_t>(edges));
    std::int64_t edge = 0;
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < degrees[i]; ++k, ++edge)
            named.push_back({sources[i], destinations[edge], weighted ? weights[edge] : 1});
    const auto make = [&comm_old, named = std::move(named), weighted,
                       comm_dist_graph](const coll::Team& among) {
        return share_and_make(among.executor(), &comm_old, among, named, weighted, comm_dist_graph);
    };
    return Pending(*comm_old.engine,
                   run_behind(Agreement(comm_old, "MPI_Dist_graph_create"), team, make));
}

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// Topology: who talks to whom in a communicator, in one of the three ways of MPI 5.0 chapter 8. It
// is made with its communicator and never changes, so duplicates share it.
#pragma once

#include "base/status.hpp"
#include "coll/neighbor_exchange.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/topo/cartesian.hpp"

#include <memory>
#include <variant>
#include <vector>

namespace gantry::mpi {

// Every process knows all edges: those of rank r are edges[index[r - 1]] to edges[index[r] - 1].
struct Graph {
    std::vector<int> index, edges;

    // Of a rank of the graph.
    int degree(int rank) const { return index[at(rank)] - begin(rank); }
    int begin(int rank) const { return rank == 0 ? 0 : index[at(rank - 1)]; }

  private:
    static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
};

// Every process knows its own edges: they are Topology::neighbors. The weights stand in the order
// of the neighbors, and are empty in a graph without weights.
struct DistGraph {
    bool weighted = false;
    std::vector<int> source_weights, destination_weights;
};

struct Topology {
    std::variant<Cartesian, Graph, DistGraph> shape;
    // Of this process. Shared with collective operations, which may outlive the communicator's
    // handle.
    std::shared_ptr<const coll::Neighbors> neighbors;
};

std::shared_ptr<const Topology> make_topology(std::variant<Cartesian, Graph, DistGraph> shape,
                                              coll::Neighbors neighbors);

// The topology of one kind, or the sentence that says which one the communicator has.
Result<const Cartesian*> cartesian_of(const Comm& comm);
Result<const Graph*> graph_of(const Comm& comm);
Result<const DistGraph*> dist_graph_of(const Comm& comm);
// The neighbors in a topology of any kind.
Result<std::shared_ptr<const coll::Neighbors>> neighbors_of(const Comm& comm);

// How many blocks a neighbor collective of this communicator sends and receives; 0 without a
// topology.
int blocks_out(const Comm& comm);
int blocks_in(const Comm& comm);

}  // namespace gantry::mpi

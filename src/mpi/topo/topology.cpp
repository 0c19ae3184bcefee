// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/topo/topology.hpp"

#include "mpi/bodies.hpp"

namespace gantry::mpi {
namespace {

// In the order of the variant.
constexpr int kKinds[] = {MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH};
constexpr const char* kNames[] = {"a Cartesian", "a graph", "a distributed graph"};

template <class Shape>
Result<const Shape*> shape_of(const Comm& comm, const char* wanted, const char* made_by) {
    if (comm.topology == nullptr)
        return failure(MPI_ERR_TOPOLOGY,
                       "the communicator has no topology: {} one is needed, as {} makes it", wanted,
                       made_by);
    if (const Shape* shape = std::get_if<Shape>(&comm.topology->shape)) return shape;
    return failure(MPI_ERR_TOPOLOGY,
                   "the communicator has {} topology: {} one is needed, as {} makes it",
                   kNames[comm.topology->shape.index()], wanted, made_by);
}

}  // namespace

std::shared_ptr<const Topology> make_topology(std::variant<Cartesian, Graph, DistGraph> shape,
                                              coll::Neighbors neighbors) {
    auto made = std::make_shared<Topology>();
    made->shape = std::move(shape);
    made->neighbors = std::make_shared<const coll::Neighbors>(std::move(neighbors));
    return made;
}

Result<const Cartesian*> cartesian_of(const Comm& comm) {
    return shape_of<Cartesian>(comm, kNames[0], "MPI_Cart_create");
}
Result<const Graph*> graph_of(const Comm& comm) {
    return shape_of<Graph>(comm, kNames[1], "MPI_Graph_create");
}
Result<const DistGraph*> dist_graph_of(const Comm& comm) {
    return shape_of<DistGraph>(comm, kNames[2], "MPI_Dist_graph_create");
}

Result<std::shared_ptr<const coll::Neighbors>> neighbors_of(const Comm& comm) {
    if (comm.topology == nullptr)
        return failure(MPI_ERR_TOPOLOGY,
                       "the communicator has no topology, so nobody is a neighbor: make one with "
                       "MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create");
    return comm.topology->neighbors;
}

int blocks_out(const Comm& comm) {
    if (comm.topology == nullptr) return 0;
    return static_cast<int>(comm.topology->neighbors->destinations.size());
}
int blocks_in(const Comm& comm) {
    if (comm.topology == nullptr) return 0;
    return static_cast<int>(comm.topology->neighbors->sources.size());
}

Status topo_test(Comm& comm, int* status) {
    *status = comm.topology == nullptr ? MPI_UNDEFINED : kKinds[comm.topology->shape.index()];
    return success();
}

}  // namespace gantry::mpi

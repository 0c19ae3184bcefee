// SPDX-License-Identifier: BSD-3-Clause
//
// Making communicators with a grid. Everybody computes the same members from the same arguments, so
// only the new context is agreed on.
#include "base/log.hpp"
#include "mpi/bodies.hpp"
#include "mpi/comm/among.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/topo/locality.hpp"
#include "mpi/topo/topology.hpp"

namespace gantry::mpi {
namespace {

// Which of the communicator's processes takes which position. `comm` has at least as many processes
// as the grid.
Arrangement reorder_by_node(const Comm& comm, const Cartesian& grid) {
    std::vector<int> node_of;
    for (int rank = 0; rank < grid.size(); ++rank)
        node_of.push_back(comm.engine->outsiders().node(comm.group.peer(rank)));
    return arrange_by_node(grid, node_of);
}

// The grid's communicator: position i is the process members[i] of the old one.
Pending create_grid(Comm& comm, const Agreement& said, Cartesian grid,
                    const std::vector<int>& processes, const coll::Team& everybody,
                    MPI_Comm* newcomm) {
    Members members;
    for (int process : processes) {
        if (process == comm.rank()) members.rank = static_cast<int>(members.peers.size());
        members.peers.push_back(comm.group.peer(process));
    }
    std::shared_ptr<const Topology> topology;
    if (members.rank != MPI_UNDEFINED) {
        coll::Neighbors neighbors = grid.neighbors(members.rank);
        topology = make_topology(std::move(grid), std::move(neighbors));
    }
    return make_agreed(comm, said, std::move(members), everybody, std::move(topology), newcomm);
}

}  // namespace

Pending cart_create(Comm& comm_old, int ndims, const int* dims, const int* periods, int reorder,
                    MPI_Comm* comm_cart) {
    const coll::Team everybody = comm_old.team();
    *comm_cart = MPI_COMM_NULL;
    Result<Cartesian> grid = make_grid(ndims, dims, periods, comm_old.size());
    if (!grid.ok()) return std::move(grid).status();
    const Arrangement arrangement =
        reorder != 0 ? reorder_by_node(comm_old, *grid) : keep_ranks(*grid, "");
    if (reorder != 0 && comm_old.rank() == 0) log::info("topo: {}", arrangement.text(*grid));
    std::vector<int> named(grid->dims);
    named.insert(named.end(), periods, periods + ndims);
    const Agreement said = Agreement(comm_old, "MPI_Cart_create").names("dims and periods", named);
    return create_grid(comm_old, said, std::move(*grid), arrangement.process_at, everybody,
                       comm_cart);
}

Status cart_map(Comm& comm, int ndims, const int* dims, const int* periods, int* newrank) {
    Result<Cartesian> grid = make_grid(ndims, dims, periods, comm.size());
    if (!grid.ok()) return std::move(grid).status();
    *newrank = reorder_by_node(comm, *grid).position_of(comm.rank());
    return success();
}

Pending cart_sub(Comm& comm, const int* remain_dims, MPI_Comm* newcomm) {
    const coll::Team everybody = comm.team();
    *newcomm = MPI_COMM_NULL;
    Result<const Cartesian*> found = cartesian_of(comm);
    if (!found.ok()) return std::move(found).status();
    const Cartesian& whole = **found;
    if (remain_dims == nullptr && whole.dimensions() > 0)
        return failure(MPI_ERR_ARG, "argument remain_dims is a null pointer");
    Cartesian grid;
    std::vector<int> first(whole.dims.size());  // my part's position 0
    whole.coordinates(comm.rank(), first.data());
    for (std::size_t i = 0; i < whole.dims.size(); ++i) {
        if (remain_dims[i] == 0) continue;
        first[i] = 0;
        grid.dims.push_back(whole.dims[i]);
        grid.periods.push_back(whole.periods[i]);
    }
    std::vector<int> processes, within(grid.dims.size());
    for (int position = 0; position < grid.size(); ++position) {
        grid.coordinates(position, within.data());
        std::vector<int> coords = first;
        for (std::size_t i = 0, next = 0; i < whole.dims.size(); ++i)
            if (remain_dims[i] != 0) coords[i] = within[next++];
        Result<int> process = whole.rank_at(coords.data());
        GANTRY_ASSERT(process.ok());
        processes.push_back(*process);
    }
    const Agreement said =
        Agreement(comm, "MPI_Cart_sub").names("remain_dims", {remain_dims, whole.dims.size()});
    return create_grid(comm, said, std::move(grid), processes, everybody, newcomm);
}

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// What a program asks a grid.
#include "mpi/bodies.hpp"
#include "mpi/topo/topology.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

Status check_room_for(const Cartesian& grid, int maxdims) {
    if (maxdims >= grid.dimensions()) return success();
    return failure(MPI_ERR_ARG,
                   "argument maxdims is {} and must be at least {}, the number of dimensions "
                   "(MPI_Cartdim_get)",
                   maxdims, grid.dimensions());
}

}  // namespace

Status cartdim_get(Comm& comm, int* ndims) {
    Result<const Cartesian*> grid = cartesian_of(comm);
    if (!grid.ok()) return std::move(grid).status();
    *ndims = (*grid)->dimensions();
    return success();
}

Status cart_get(Comm& comm, int maxdims, int* dims, int* periods, int* coords) {
    Result<const Cartesian*> grid = cartesian_of(comm);
    if (!grid.ok()) return std::move(grid).status();
    GANTRY_TRY(check_room_for(**grid, maxdims));
    std::copy((*grid)->dims.begin(), (*grid)->dims.end(), dims);
    std::copy((*grid)->periods.begin(), (*grid)->periods.end(), periods);
    (*grid)->coordinates(comm.rank(), coords);
    return success();
}

Status cart_rank(Comm& comm, const int* coords, int* rank) {
    Result<const Cartesian*> grid = cartesian_of(comm);
    if (!grid.ok()) return std::move(grid).status();
    if (coords == nullptr && (*grid)->dimensions() > 0)
        return failure(MPI_ERR_ARG, "argument coords is a null pointer");
    Result<int> found = (*grid)->rank_at(coords);
    if (!found.ok()) return std::move(found).status();
    *rank = *found;
    return success();
}

Status cart_coords(Comm& comm, int rank, int maxdims, int* coords) {
    Result<const Cartesian*> grid = cartesian_of(comm);
    if (!grid.ok()) return std::move(grid).status();
    GANTRY_TRY(check_room_for(**grid, maxdims));
    (*grid)->coordinates(rank, coords);
    return success();
}

Status cart_shift(Comm& comm, int direction, int disp, int* rank_source, int* rank_dest) {
    Result<const Cartesian*> grid = cartesian_of(comm);
    if (!grid.ok()) return std::move(grid).status();
    if (direction < 0 || direction >= (*grid)->dimensions())
        return failure(MPI_ERR_DIMS,
                       "argument direction is {} and must name one of the {} dimensions, counted "
                       "from 0",
                       direction, (*grid)->dimensions());
    *rank_source = (*grid)->neighbor(comm.rank(), direction, -std::int64_t{disp});
    *rank_dest = (*grid)->neighbor(comm.rank(), direction, disp);
    return success();
}

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/topo/cartesian.hpp"

#include "base/room.hpp"

namespace gantry::mpi {
namespace {

// A coordinate of a periodic dimension, brought into the grid.
int wrap(std::int64_t coordinate, int size) {
    const std::int64_t rest = coordinate % size;
    return static_cast<int>(rest < 0 ? rest + size : rest);
}

}  // namespace

int Cartesian::size() const {
    int product = 1;
    for (int size : dims)
        product *= size;
    return product;
}

void Cartesian::coordinates(int rank, int* coords) const {
    for (std::size_t i = dims.size(); i-- > 0;) {
        coords[i] = rank % dims[i];
        rank /= dims[i];
    }
}

Result<int> Cartesian::rank_at(const int* coords) const {
    int rank = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (periods[i] == 0 && (coords[i] < 0 || coords[i] >= dims[i]))
            return failure(MPI_ERR_ARG,
                           "argument coords[{}] is {} and must lie between 0 and {}: dimension {} "
                           "is not periodic",
                           i, coords[i], dims[i] - 1, i);
        rank = rank * dims[i] + wrap(coords[i], dims[i]);
    }
    return rank;
}

int Cartesian::neighbor(int rank, int dimension, std::int64_t steps) const {
    const auto along = static_cast<std::size_t>(dimension);
    int stride = 1;
    for (std::size_t i = along + 1; i < dims.size(); ++i)
        stride *= dims[i];
    const int size = dims[along], here = rank / stride % size;
    const std::int64_t there = here + steps;
    if (periods[along] == 0 && (there < 0 || there >= size)) return MPI_PROC_NULL;
    return rank + (wrap(there, size) - here) * stride;
}

coll::Neighbors Cartesian::neighbors(int rank) const {
    coll::Neighbors found;
    for (int dimension = 0; dimension < dimensions(); ++dimension) {
        found.sources.push_back(neighbor(rank, dimension, -1));
        found.sources.push_back(neighbor(rank, dimension, 1));
    }
    found.destinations = found.sources;
    found.pairing = coll::Neighbors::Pairing::opposite;
    return found;
}

std::string Cartesian::text() const {
    if (dims.empty()) return "without dimensions";
    return fmt::format("{}", fmt::join(dims, " x "));
}

Result<Cartesian> make_grid(int ndims, const int* dims, const int* periods, int processes) {
    if (ndims < 0) return failure(MPI_ERR_DIMS, "ndims is {} and must not be negative", ndims);
    const auto number = static_cast<std::size_t>(ndims);
    // Two arrays here, and two neighbors along each dimension in two lists.
    GANTRY_TRY(check_room(number, 6 * sizeof(int)));
    Cartesian grid;
    grid.dims.reserve(number);
    grid.periods.reserve(number);
    std::int64_t size = 1;
    for (std::size_t i = 0; i < number; ++i) {
        if (dims[i] <= 0)
            return failure(MPI_ERR_DIMS, "argument dims[{}] is {} and must be positive", i,
                           dims[i]);
        size *= dims[i];
        if (size > processes)
            return failure(
                MPI_ERR_DIMS,
                "the grid needs more processes than the {} of the communicator: {} is {}",
                processes,
                i == 0 ? std::string("dims[0]")
                       : fmt::format("the product of dims[0] to dims[{}]", i),
                size);
        grid.dims.push_back(dims[i]);
        grid.periods.push_back(periods[i] != 0 ? 1 : 0);
    }
    return grid;
}

}  // namespace gantry::mpi

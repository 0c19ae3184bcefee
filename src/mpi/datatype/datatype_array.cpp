// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of arrays (MPI 5.0 sections 5.1.3 and 5.1.4). A subarray and a distributed array are the
// same thing: in each dimension some runs of indices belong to it. From the fastest dimension
// outwards, each dimension's type is its runs over the one below, which is as wide as a full slice.
#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"

#include <algorithm>
#include <vector>

namespace gantry::mpi {
namespace {

// Runs of indices, `stride` from one to the next.
struct Run {
    MPI_Count first, length, repeats = 1, stride = 0;
};
struct Dimension {
    MPI_Count size = 0;
    std::vector<Run> runs;
};

Result<Datatype*> assemble_runs(const std::vector<Run>& runs, std::ptrdiff_t width,
                                Datatype* slice) {
    std::vector<Piece> pieces;
    for (const Run& run : runs) {
        Result<std::ptrdiff_t> first = distance(run.first, width),
                               stride = distance(run.stride, width);
        if (!first.ok()) return first.status();
        if (!stride.ok()) return stride.status();
        pieces.push_back({*first, static_cast<Bytes>(run.length), slice,
                          static_cast<Bytes>(run.repeats), *stride});
    }
    return assemble(std::move(pieces));
}

// `dimensions` from fastest to slowest.
Result<Datatype*> assemble_array(const std::vector<Dimension>& dimensions, Datatype& oldtype) {
    Datatype* slice = retain(&oldtype);
    std::ptrdiff_t width = oldtype.extent();
    for (const Dimension& dimension : dimensions) {
        Result<std::ptrdiff_t> whole = distance(dimension.size, width);
        Result<Datatype*> wider =
            whole.ok() ? assemble_runs(dimension.runs, width, slice) : whole.status();
        release(slice);
        if (!wider.ok()) return wider;
        width = *whole;
        set_bounds(**wider, 0, width);
        slice = *wider;
    }
    return slice;
}

std::vector<Run> block_runs(MPI_Count size, int coordinate, MPI_Count block) {
    const MPI_Count first = block * coordinate, end = std::min(size, first + block);
    return first < end ? std::vector<Run>{{first, end - first}} : std::vector<Run>{};
}

std::vector<Run> cyclic_runs(MPI_Count size, int processes, int coordinate, MPI_Count block) {
    const MPI_Count first = block * coordinate, cycle = block * processes;
    if (first >= size) return {};
    const MPI_Count whole = (size - first) / cycle + ((size - first) % cycle >= block ? 1 : 0);
    std::vector<Run> runs;
    if (whole > 0) runs.push_back({first, block, whole, cycle});
    if (const MPI_Count last = first + whole * cycle; last < size)
        runs.push_back({last, size - last});
    return runs;
}

Status bad_order(int order) {
    return failure(MPI_ERR_ARG, "order {} is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
}

// The dimension with this place counted from the fastest.
int from_fastest(int place, int ndims, int order) {
    return order == MPI_ORDER_FORTRAN ? place : ndims - 1 - place;
}

}  // namespace

Status type_create_subarray(int ndims, const MPI_Count* array_of_sizes,
                            const MPI_Count* array_of_subsizes, const MPI_Count* array_of_starts,
                            int order, Datatype& oldtype, MPI_Datatype* newtype) {
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN) return bad_order(order);
    std::vector<Dimension> dimensions;
    for (int place = 0; place < ndims; ++place) {
        const int d = from_fastest(place, ndims, order);
        const MPI_Count size = array_of_sizes[d], part = array_of_subsizes[d],
                        start = array_of_starts[d];
        if (size < 1 || part < 1 || start < 0 || start > size - part)
            return failure(
                MPI_ERR_ARG,
                "dimension {}: a part of {} from index {} does not lie in an array of {}", d, part,
                start, size);
        dimensions.push_back({size, {{start, part}}});
    }
    Recipe recipe{MPI_COMBINER_SUBARRAY, {ndims}, {}, {&oldtype}};
    for (const MPI_Count* list : {array_of_sizes, array_of_subsizes, array_of_starts})
        recipe.integers.insert(recipe.integers.end(), list, list + ndims);
    recipe.integers.push_back(order);
    return give(assemble_array(dimensions, oldtype), std::move(recipe), newtype);
}

Status type_create_darray(int size, int rank, int ndims, const MPI_Count* array_of_gsizes,
                          const int* array_of_distribs, const int* array_of_dargs,
                          const int* array_of_psizes, int order, Datatype& oldtype,
                          MPI_Datatype* newtype) {
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN) return bad_order(order);
    if (rank < 0 || rank >= size)
        return failure(MPI_ERR_ARG, "rank {} is not one of {} processes", rank, size);
    MPI_Count grid = 1;
    for (int d = 0; d < ndims; ++d) {
        if (array_of_psizes[d] < 1)
            return failure(MPI_ERR_ARG, "dimension {}: a grid of {} processes", d,
                           array_of_psizes[d]);
        if (grid <= size) grid *= array_of_psizes[d];
    }
    if (grid != size)
        return failure(MPI_ERR_ARG, "a grid of {} processes does not fit {} processes", grid, size);
    // Processes are laid out in C order, whatever the array's order is.
    std::vector<int> coordinates(static_cast<std::size_t>(ndims));
    int rest = rank;
    for (int d = ndims - 1; d >= 0; --d) {
        coordinates[static_cast<std::size_t>(d)] = rest % array_of_psizes[d];
        rest /= array_of_psizes[d];
    }
    std::vector<Dimension> dimensions;
    for (int place = 0; place < ndims; ++place) {
        const int d = from_fastest(place, ndims, order);
        const MPI_Count length = array_of_gsizes[d];
        const int processes = array_of_psizes[d], argument = array_of_dargs[d];
        const int coordinate = coordinates[static_cast<std::size_t>(d)];
        if (length < 1)
            return failure(MPI_ERR_ARG, "dimension {} of the array has {} elements", d, length);
        if (argument != MPI_DISTRIBUTE_DFLT_DARG && argument < 1)
            return failure(MPI_ERR_ARG, "dimension {}: a distribution argument of {}", d, argument);
        Dimension dimension{length, {}};
        switch (array_of_distribs[d]) {
            case MPI_DISTRIBUTE_NONE:
                if (processes != 1)
                    return failure(MPI_ERR_ARG,
                                   "dimension {} is not distributed but has {} processes", d,
                                   processes);
                dimension.runs = {{0, length}};
                break;
            case MPI_DISTRIBUTE_BLOCK: {
                const MPI_Count block = argument == MPI_DISTRIBUTE_DFLT_DARG
                                            ? (length + processes - 1) / processes
                                            : argument;
                if (block * processes < length)
                    return failure(MPI_ERR_ARG,
                                   "dimension {}: {} blocks of {} do not cover {} elements", d,
                                   processes, block, length);
                dimension.runs = block_runs(length, coordinate, block);
                break;
            }
            case MPI_DISTRIBUTE_CYCLIC:
                dimension.runs = cyclic_runs(length, processes, coordinate,
                                             argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument);
                break;
            default:
                return failure(MPI_ERR_ARG, "dimension {}: {} is none of MPI_DISTRIBUTE_*", d,
                               array_of_distribs[d]);
        }
        dimensions.push_back(std::move(dimension));
    }
    Recipe recipe{MPI_COMBINER_DARRAY, {size, rank, ndims}, {}, {&oldtype}};
    recipe.integers.insert(recipe.integers.end(), array_of_gsizes, array_of_gsizes + ndims);
    for (const int* list : {array_of_distribs, array_of_dargs, array_of_psizes})
        recipe.integers.insert(recipe.integers.end(), list, list + ndims);
    recipe.integers.push_back(order);
    return give(assemble_array(dimensions, oldtype), std::move(recipe), newtype);
}

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// What can be said without virtual topologies: that a communicator has none, and how to factorise a
// number of processes.
#include "mpi/bodies.hpp"
#include "mpi/comm.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace gantry::mpi {
namespace {

// The prime factors, largest first.
std::vector<int> prime_factors(int number) {
    std::vector<int> factors;
    for (int divisor = 2; divisor <= number / divisor; ++divisor) {
        while (number % divisor == 0) {
            factors.push_back(divisor);
            number /= divisor;
        }
    }
    if (number > 1) factors.push_back(number);
    std::reverse(factors.begin(), factors.end());
    return factors;
}

}  // namespace

Status topo_test(Comm&, int* status) {
    *status = MPI_UNDEFINED;
    return success();
}

Status dims_create(int nnodes, int ndims, int* dims) {
    int fixed = 1, open = 0;
    for (int i = 0; i < ndims; ++i) {
        if (dims[i] < 0) return failure(MPI_ERR_DIMS, "dimension {} has {} processes", i, dims[i]);
        if (dims[i] == 0)
            ++open;
        else
            fixed *= dims[i];
    }
    if (nnodes % fixed != 0 || (open == 0 && fixed != nnodes))
        return failure(MPI_ERR_DIMS,
                       "{} processes cannot be arranged with {} in the dimensions that are given",
                       nnodes, fixed);
    // Each factor, from the largest, goes to the dimension that is the smallest so far.
    std::vector<int> sizes(static_cast<std::size_t>(open), 1);
    for (int factor : prime_factors(nnodes / fixed))
        *std::min_element(sizes.begin(), sizes.end()) *= factor;
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    for (int i = 0, next = 0; i < ndims; ++i)
        if (dims[i] == 0) dims[i] = sizes[static_cast<std::size_t>(next++)];
    return success();
}

}  // namespace gantry::mpi

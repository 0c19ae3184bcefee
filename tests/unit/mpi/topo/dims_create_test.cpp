// SPDX-License-Identifier: BSD-3-Clause
//
// How processes are shared out over dimensions.
#include "unit/mpi/running.hpp"

#include <vector>

namespace gantry::mpi {
namespace {

using Dims = std::vector<int>;

Dims arranged(int nnodes, Dims dims) {
    expect_ok(dims_create(nnodes, static_cast<int>(dims.size()), dims.data()));
    return dims;
}

int error_of(int nnodes, Dims dims) {
    const Status status = dims_create(nnodes, static_cast<int>(dims.size()), dims.data());
    return status.ok() ? MPI_SUCCESS : status.error_class();
}

TEST(Dimensions, AreAsCloseToEachOtherAsTheNumberAllows) {
    EXPECT_EQ(arranged(72, {0, 0}), (Dims{9, 8}));
    EXPECT_EQ(arranged(240, {0, 0}), (Dims{16, 15}));
    EXPECT_EQ(arranged(6, {0, 0, 0}), (Dims{3, 2, 1}));
    EXPECT_EQ(arranged(1024, {0, 0, 0}), (Dims{16, 8, 8}));
    EXPECT_EQ(arranged(999999, {0, 0}), (Dims{1001, 999}));
    EXPECT_EQ(arranged(7, {0, 0}), (Dims{7, 1}));
}

TEST(Dimensions, OfManyProcessesAreFoundToo) {
    // 2^4 * 3^3 * 5 * 7 * 11 * 13 * 17 * 19: 960 divisors.
    EXPECT_EQ(arranged(698377680, {0, 0}), (Dims{26520, 26334}));
    EXPECT_EQ(arranged(698377680, {0, 0, 0}), (Dims{924, 884, 855}));
    EXPECT_EQ(arranged(2147483647, {0, 0, 0}), (Dims{2147483647, 1, 1}));
    EXPECT_EQ(arranged(1 << 30, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), (Dims(10, 8)));
}

TEST(Dimensions, ThatAreGivenStay) {
    EXPECT_EQ(arranged(24, {0, 3, 0}), (Dims{4, 3, 2}));
    EXPECT_EQ(arranged(6, {2, 3}), (Dims{2, 3}));
}

TEST(Dimensions, ThatDoNotFitAreRefused) {
    EXPECT_EQ(error_of(7, {0, 3}), MPI_ERR_DIMS);
    EXPECT_EQ(error_of(6, {2, 2}), MPI_ERR_DIMS);
    EXPECT_EQ(error_of(6, {-1, 0}), MPI_ERR_DIMS);
    EXPECT_EQ(error_of(0, {0, 0}), MPI_ERR_ARG);
    EXPECT_EQ(error_of(-4, {0, 0}), MPI_ERR_ARG);
}

}  // namespace
}  // namespace gantry::mpi

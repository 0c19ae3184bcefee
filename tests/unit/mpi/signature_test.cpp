// SPDX-License-Identifier: BSD-3-Clause
//
// Type signatures as hashes: equal for the same basic items in the same order, whatever the types
// that hold them; and cheap for large counts.
#include "mpi/check/signature.hpp"

#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gantry::mpi {
namespace {

Signature of(MPI_Datatype type, Bytes count) {
    return signature_of(*find(type), count);
}

MPI_Datatype structure(MPI_Datatype first, MPI_Datatype second) {
    const std::array<MPI_Count, 2> lengths{1, 2}, places{0, 64};
    const std::array<MPI_Datatype, 2> types{first, second};
    MPI_Datatype made;
    EXPECT_TRUE(type_create_struct(2, lengths.data(), places.data(), types.data(), &made).ok());
    return made;
}

TEST(Signatures, AreOfItemsAndNotOfTypes) {
    MPI_Datatype row, rows;
    EXPECT_TRUE(type_contiguous(3, *find(MPI_INT), &row).ok());
    EXPECT_TRUE(type_vector(4, 2, 7, *find(row), &rows).ok());
    EXPECT_EQ(of(rows, 5), of(MPI_INT, 120));
    EXPECT_EQ(of(row, 1), of(MPI_INT32_T, 3));
    EXPECT_NE(of(row, 1), of(MPI_FLOAT, 3));
    EXPECT_NE(of(row, 1), of(MPI_INT, 4));
    EXPECT_NE(of(MPI_BYTE, 4), of(MPI_PACKED, 4));
    EXPECT_EQ(of(MPI_INT, 0), of(MPI_DOUBLE, 0));
}

TEST(Signatures, KnowTheOrder) {
    EXPECT_NE(of(structure(MPI_INT, MPI_DOUBLE), 1), of(structure(MPI_DOUBLE, MPI_INT), 1));
    EXPECT_NE(of(structure(MPI_INT, MPI_DOUBLE), 2), of(structure(MPI_INT, MPI_DOUBLE), 1));
    const Signature twice = of(structure(MPI_INT, MPI_DOUBLE), 2);
    EXPECT_EQ(twice.items, 6u);
}

TEST(Signatures, OfManyItemsAreWorkedOut) {
    EXPECT_EQ(of(MPI_INT, Bytes{1} << 40).items, Bytes{1} << 40);
    EXPECT_NE(of(MPI_INT, Bytes{1} << 40), of(MPI_INT, (Bytes{1} << 40) + 1));
}

}  // namespace
}  // namespace gantry::mpi

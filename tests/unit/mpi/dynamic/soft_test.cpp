// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic/soft.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

namespace gantry::mpi {
namespace {

TEST(Soft, TheLargestNumberThatIsNoLargerIsTaken) {
    EXPECT_EQ(largest_of_soft("4", 8).value(), 4);
    EXPECT_EQ(largest_of_soft("0:8", 5).value(), 5);
    EXPECT_EQ(largest_of_soft("0:100:7", 20).value(), 14);
    EXPECT_EQ(largest_of_soft("16:1:-5", 12).value(), 11);
    EXPECT_EQ(largest_of_soft("2,4:6,9", 8).value(), 6);
}

TEST(Soft, ListsWithoutSuchANumberAreErrors) {
    EXPECT_EQ(largest_of_soft("9:12", 8).status().error_class(), MPI_ERR_SPAWN);
    EXPECT_EQ(largest_of_soft("0", 8).status().error_class(), MPI_ERR_SPAWN);
    for (const char* list : {"", "x", "1:", "1:2:3:4", "1,,2"})
        EXPECT_EQ(largest_of_soft(list, 8).status().error_class(), MPI_ERR_INFO_VALUE) << list;
}

}  // namespace
}  // namespace gantry::mpi

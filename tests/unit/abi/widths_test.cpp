// SPDX-License-Identifier: BSD-3-Clause
//
// Between the int form of a function and its body: arrays grow wider, results that an int cannot
// express say so.
#include "abi/widths.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace gantry::abi {
namespace {

TEST(Widths, NarrowKeepsWhatAnIntExpresses) {
    EXPECT_EQ(narrow(0), 0);
    EXPECT_EQ(narrow(INT_MAX), INT_MAX);
    EXPECT_EQ(narrow(INT_MIN), INT_MIN);
}

TEST(Widths, NarrowSaysUndefinedBeyondAnInt) {
    EXPECT_EQ(narrow(MPI_Count{INT_MAX} + 1), MPI_UNDEFINED);
    EXPECT_EQ(narrow(MPI_Count{INT_MIN} - 1), MPI_UNDEFINED);
    EXPECT_EQ(narrow(MPI_Count{1} << 40), MPI_UNDEFINED);
}

TEST(Widths, ArraysKeepTheirValuesOnTheStackAndOnTheHeap) {
    Call call("MPI_Alltoallv", When::always);
    for (std::size_t number : {1U, 32U, 33U, 1000U}) {
        std::vector<int> narrow_values(number);
        std::iota(narrow_values.begin(), narrow_values.end(), -5);
        const Widened<MPI_Count> wide(call, narrow_values.data(), static_cast<MPI_Count>(number));
        ASSERT_NE(wide.data(), nullptr);
        for (std::size_t i = 0; i < number; ++i)
            EXPECT_EQ(wide.data()[i], narrow_values[i]);
    }
    EXPECT_FALSE(call.failed());
}

TEST(Widths, ArraysThatDoNotCountAreNull) {
    Call call("MPI_Gatherv", When::always);
    const int* nothing = nullptr;
    EXPECT_EQ(Widened<MPI_Aint>(call, nothing, 7).data(), nullptr);
    const int values[] = {1};
    EXPECT_EQ(Widened<MPI_Aint>(call, values, 0).data(), nullptr);
}

}  // namespace
}  // namespace gantry::abi

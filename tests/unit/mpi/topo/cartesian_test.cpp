// SPDX-License-Identifier: BSD-3-Clause
//
// The arithmetic of grids.
#include "mpi/topo/cartesian.hpp"
#include "unit/mpi/running.hpp"

#include <climits>

namespace gantry::mpi {
namespace {

using Ints = std::vector<int>;

Cartesian grid(Ints dims, Ints periods) {
    Cartesian made;
    made.dims = std::move(dims);
    made.periods = std::move(periods);
    return made;
}

TEST(Cartesian, RanksAndCoordinatesAreInverse) {
    for (const Ints& dims : {Ints{}, Ints{1}, Ints{5}, Ints{2, 1, 3}, Ints{4, 3}, Ints{1, 1, 7}}) {
        const Cartesian made = grid(dims, Ints(dims.size(), 0));
        Ints coords(dims.size());
        for (int rank = 0; rank < made.size(); ++rank) {
            made.coordinates(rank, coords.data());
            Result<int> back = made.rank_at(coords.data());
            ASSERT_TRUE(back.ok());
            EXPECT_EQ(*back, rank);
        }
    }
}

TEST(Cartesian, TheLastCoordinateChangesFastest) {
    Ints coords(3);
    grid({2, 3, 4}, {0, 0, 0}).coordinates(1 * 12 + 2 * 4 + 3, coords.data());
    EXPECT_EQ(coords, (Ints{1, 2, 3}));
}

TEST(Cartesian, CoordinatesBeyondAPeriodicEndComeRoundFromTheOther) {
    const Cartesian made = grid({3, 4}, {1, 0});
    const auto at = [&made](Ints coords) { return *made.rank_at(coords.data()); };
    EXPECT_EQ(at({-1, 2}), at({2, 2}));
    EXPECT_EQ(at({3, 0}), at({0, 0}));
    EXPECT_EQ(at({INT_MAX, 0}), at({INT_MAX % 3, 0}));
    EXPECT_EQ(at({INT_MIN, 0}), at({1, 0}));  // -2147483648 is 1 modulo 3
}

TEST(Cartesian, CoordinatesBeyondAFixedEndAreRefused) {
    const Cartesian made = grid({3, 4}, {1, 0});
    for (const Ints& coords : {Ints{0, 4}, Ints{0, -1}}) {
        const Result<int> rank = made.rank_at(coords.data());
        expect_class(rank.status(), MPI_ERR_ARG);
        EXPECT_NE(rank.status().text().find("coords[1]"), std::string_view::npos);
    }
}

TEST(Cartesian, StepsOfAnyLengthLeadAroundOrOut) {
    const Cartesian made = grid({5, 2}, {1, 0});
    EXPECT_EQ(made.neighbor(0, 0, 1), 2);
    EXPECT_EQ(made.neighbor(0, 0, -1), 8);
    EXPECT_EQ(made.neighbor(0, 0, 7), 4);
    EXPECT_EQ(made.neighbor(0, 0, -7), 6);
    EXPECT_EQ(made.neighbor(0, 0, INT_MAX), made.neighbor(0, 0, INT_MAX % 5));
    EXPECT_EQ(made.neighbor(0, 0, -std::int64_t{INT_MIN}), made.neighbor(0, 0, 3));
    EXPECT_EQ(made.neighbor(0, 1, 1), 1);
    EXPECT_EQ(made.neighbor(1, 1, 1), MPI_PROC_NULL);
    EXPECT_EQ(made.neighbor(0, 1, -1), MPI_PROC_NULL);
    EXPECT_EQ(made.neighbor(1, 1, INT_MAX), MPI_PROC_NULL);
}

TEST(Cartesian, NeighborsComeByDimensionBackBeforeForth) {
    const coll::Neighbors found = grid({3, 2, 1}, {1, 0, 1}).neighbors(2);
    EXPECT_EQ(found.sources, (Ints{0, 4, MPI_PROC_NULL, 3, 2, 2}));
    EXPECT_EQ(found.destinations, found.sources);
    EXPECT_EQ(found.pairing, coll::Neighbors::Pairing::opposite);
}

Status error_of(Ints dims, int processes) {
    const Ints periods(dims.size(), 0);
    return make_grid(static_cast<int>(dims.size()), dims.data(), periods.data(), processes)
        .status();
}

TEST(Cartesian, GridsThatDoNotFitAreRefused) {
    expect_ok(error_of({2, 3}, 6));
    expect_ok(error_of({}, 1));
    expect_class(error_of({2, 4}, 7), MPI_ERR_DIMS);
    expect_class(error_of({65536, 65536}, 4), MPI_ERR_DIMS);  // 2^32 processes
    expect_class(error_of({2, 0}, 7), MPI_ERR_DIMS);
    expect_class(error_of({-2, -2}, 7), MPI_ERR_DIMS);
    expect_class(make_grid(-1, nullptr, nullptr, 4).status(), MPI_ERR_DIMS);
}

TEST(Cartesian, EveryPeriodThatIsNotZeroIsTrue) {
    const int dims[] = {2, 2}, periods[] = {-5, 0};
    EXPECT_EQ(make_grid(2, dims, periods, 4).value().periods, (Ints{1, 0}));
}

}  // namespace
}  // namespace gantry::mpi

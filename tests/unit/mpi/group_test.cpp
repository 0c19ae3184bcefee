// SPDX-License-Identifier: BSD-3-Clause
//
// Set operations on groups, with processes of a job that need not exist.
#include "running.hpp"

#include <array>

namespace gantry::mpi {
namespace {

Group& group(std::vector<int> peers) {
    return *find(make_group(std::move(peers)));
}

std::vector<int> peers_of(MPI_Group handle) {
    return find(handle)->peers;
}

TEST(Groups, UnionKeepsTheFirstOrderAndAppendsTheRest) {
    MPI_Group made;
    expect_ok(group_union(group({5, 1, 3}), group({2, 3, 9}), &made));
    EXPECT_EQ(peers_of(made), (std::vector<int>{5, 1, 3, 2, 9}));
}

TEST(Groups, IntersectionAndDifferenceKeepTheFirstOrder) {
    MPI_Group made;
    expect_ok(group_intersection(group({5, 1, 3}), group({3, 5}), &made));
    EXPECT_EQ(peers_of(made), (std::vector<int>{5, 3}));
    expect_ok(group_difference(group({5, 1, 3}), group({3, 9}), &made));
    EXPECT_EQ(peers_of(made), (std::vector<int>{5, 1}));
}

TEST(Groups, WithoutMembersAreTheEmptyGroup) {
    MPI_Group made;
    expect_ok(group_difference(group({5, 1}), group({1, 5}), &made));
    EXPECT_EQ(made, MPI_GROUP_EMPTY);
    expect_ok(group_free(&made));
    EXPECT_EQ(made, MPI_GROUP_NULL);
    EXPECT_NE(find(MPI_GROUP_EMPTY), nullptr);
}

TEST(Groups, CompareKnowsOrderFromMembership) {
    int result = 0;
    expect_ok(group_compare(group({1, 2}), group({1, 2}), &result));
    EXPECT_EQ(result, MPI_IDENT);
    expect_ok(group_compare(group({1, 2}), group({2, 1}), &result));
    EXPECT_EQ(result, MPI_SIMILAR);
    expect_ok(group_compare(group({1, 2}), group({1, 3}), &result));
    EXPECT_EQ(result, MPI_UNEQUAL);
}

TEST(Groups, TranslateGivesUndefinedForStrangersAndKeepsProcNull) {
    const std::array<int, 3> ranks{0, 2, MPI_PROC_NULL};
    std::array<int, 3> translated{};
    expect_ok(
        group_translate_ranks(group({7, 8, 9}), 3, ranks.data(), group({9, 5}), translated.data()));
    EXPECT_EQ(translated, (std::array<int, 3>{MPI_UNDEFINED, 0, MPI_PROC_NULL}));
    const int outside = 3;
    expect_class(
        group_translate_ranks(group({7, 8, 9}), 1, &outside, group({9, 5}), translated.data()),
        MPI_ERR_RANK);
}

TEST(Groups, RangesCountDownwardsToo) {
    int ranges[2][3] = {{6, 2, -2}, {0, 1, 1}};
    MPI_Group made;
    Group& eight = group({10, 11, 12, 13, 14, 15, 16, 17});
    expect_ok(group_range_incl(eight, 2, ranges, &made));
    EXPECT_EQ(peers_of(made), (std::vector<int>{16, 14, 12, 10, 11}));
    expect_ok(group_range_excl(eight, 2, ranges, &made));
    EXPECT_EQ(peers_of(made), (std::vector<int>{13, 15, 17}));
}

TEST(Groups, RefuseRanksTwiceOrOutside) {
    const std::array<int, 2> twice{1, 1}, outside{0, 3};
    MPI_Group made = MPI_GROUP_NULL;
    expect_class(group_incl(group({4, 5, 6}), 2, twice.data(), &made), MPI_ERR_RANK);
    expect_class(group_excl(group({4, 5, 6}), 2, outside.data(), &made), MPI_ERR_RANK);
    int still[1][3] = {{0, 2, 0}};
    expect_class(group_range_incl(group({4, 5, 6}), 1, still, &made), MPI_ERR_ARG);
}

}  // namespace
}  // namespace gantry::mpi

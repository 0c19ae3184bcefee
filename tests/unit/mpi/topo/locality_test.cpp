// SPDX-License-Identifier: BSD-3-Clause
//
// Which process takes which position of a grid.
#include "mpi/topo/locality.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gantry::mpi {
namespace {

using Ints = std::vector<int>;

Cartesian grid(Ints dims, int period = 0) {
    Cartesian made;
    made.periods.assign(dims.size(), period);
    made.dims = std::move(dims);
    return made;
}

// Ranks 0, 1, ... in runs of the same node.
Ints nodes_of(const Ints& sizes) {
    Ints node_of;
    for (std::size_t node = 0; node < sizes.size(); ++node)
        node_of.insert(node_of.end(), static_cast<std::size_t>(sizes[node]),
                       static_cast<int>(node));
    return node_of;
}

// The plain count: every position, every dimension, one step forth.
std::int64_t pairs_apart(const Cartesian& grid, const Arrangement& found, const Ints& node_of) {
    const auto node_at = [&](int position) {
        const int process = found.process_at[static_cast<std::size_t>(position)];
        return node_of[static_cast<std::size_t>(process)];
    };
    std::int64_t apart = 0;
    for (int position = 0; position < grid.size(); ++position)
        for (int dimension = 0; dimension < grid.dimensions(); ++dimension) {
            const int next = grid.neighbor(position, dimension, 1);
            if (next != MPI_PROC_NULL && node_at(position) != node_at(next)) ++apart;
        }
    return apart;
}

bool is_permutation_of_ranks(Ints processes) {
    std::sort(processes.begin(), processes.end());
    for (std::size_t i = 0; i < processes.size(); ++i)
        if (processes[i] != static_cast<int>(i)) return false;
    return true;
}

TEST(Locality, NodesOfEqualSizeTakeBlocks) {
    const Cartesian square = grid({4, 4});
    const Ints node_of = nodes_of({4, 4, 4, 4});
    const Arrangement found = arrange_by_node(square, node_of);
    EXPECT_EQ(found.process_at, (Ints{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
    EXPECT_EQ(found.apart, 8);
    EXPECT_EQ(found.apart_in_rank_order, 12);
    EXPECT_EQ(found.pairs, 24);
    EXPECT_EQ(found.text(square),
              "grid 4 x 4: blocks of 2 x 2 on each node; 8 of 24 pairs of neighbors are on two "
              "nodes (12 in rank order)");
}

TEST(Locality, EightGpusOfANodeTakeACubeOfAGridInThreeDimensions) {
    const Arrangement found = arrange_by_node(grid({4, 4, 4}), nodes_of(Ints(8, 8)));
    EXPECT_EQ(found.how, "blocks of 2 x 2 x 2 on each node");
    EXPECT_EQ(found.apart, 48);
    EXPECT_EQ(found.apart_in_rank_order, 64);
}

TEST(Locality, ProcessesDealtOutRoundRobinAreBroughtTogether) {
    Ints node_of;
    for (int rank = 0; rank < 12; ++rank)
        node_of.push_back(rank % 3);
    const Arrangement found = arrange_by_node(grid({12}), node_of);
    EXPECT_EQ(found.process_at, (Ints{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
    EXPECT_EQ(found.apart, 2);
    EXPECT_EQ(found.apart_in_rank_order, 11);
}

TEST(Locality, NobodyMovesWhereThatBringsNothing) {
    const std::vector<std::pair<Cartesian, Ints>> cases = {
        {grid({4, 4}), nodes_of({16})},        // one node
        {grid({2, 3}), nodes_of(Ints(6, 1))},  // a node for each
        {grid({4, 4}), nodes_of({8, 8})},      // rows are blocks already
        {grid({}), nodes_of({1})},
        {grid({1, 1}, 1), nodes_of({1})},
    };
    for (const auto& [of, node_of] : cases) {
        const Arrangement found = arrange_by_node(of, node_of);
        EXPECT_TRUE(std::is_sorted(found.process_at.begin(), found.process_at.end())) << of.text();
        EXPECT_EQ(found.how, "ranks keep their order");
    }
}

TEST(Locality, NodesOfUnequalSizeAreBroughtTogetherToo) {
    // 5 and 3 ranks: no block fits both, and dealt out in turns.
    const Ints node_of = {0, 1, 0, 1, 0, 1, 0, 0};
    const Cartesian of = grid({4, 2});
    const Arrangement found = arrange_by_node(of, node_of);
    EXPECT_TRUE(is_permutation_of_ranks(found.process_at));
    EXPECT_LT(found.apart, found.apart_in_rank_order);
    EXPECT_LE(found.apart, 3);
}

TEST(Locality, EverySizeGivesEveryProcessOnePositionAndIsNeverWorse) {
    std::mt19937_64 random(5);
    const auto below = [&random](int limit) {
        return static_cast<int>(random() % static_cast<std::uint64_t>(limit));
    };
    for (int round = 0; round < 2000; ++round) {
        Ints dims;
        for (int i = below(5); i > 0; --i)
            dims.push_back(1 + below(6));
        Cartesian of = grid(dims);
        for (int& period : of.periods)
            period = below(2);
        const int size = of.size(), nodes = 1 + below(8);
        Ints node_of;
        for (int rank = 0; rank < size; ++rank)
            node_of.push_back(round % 2 == 0 ? rank * nodes / size : below(nodes));
        const Arrangement found = arrange_by_node(of, node_of);
        SCOPED_TRACE(found.text(of));
        ASSERT_EQ(found.process_at.size(), static_cast<std::size_t>(size));
        ASSERT_TRUE(is_permutation_of_ranks(found.process_at));
        ASSERT_LE(found.apart, found.apart_in_rank_order);
        ASSERT_EQ(found.apart, pairs_apart(of, found, node_of));
        ASSERT_EQ(found.apart_in_rank_order, pairs_apart(of, keep_ranks(of, ""), node_of));
        for (int rank = 0; rank < size; ++rank)
            ASSERT_EQ(found.process_at[static_cast<std::size_t>(found.position_of(rank))], rank);
        ASSERT_EQ(found.position_of(size), MPI_UNDEFINED);
    }
}

}  // namespace
}  // namespace gantry::mpi

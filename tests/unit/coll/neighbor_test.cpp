// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbor exchanges and the edges of distributed graphs in the world, against plain models: a
// torus is asked coordinate by coordinate, a graph is one list of edges that every rank knows.
#include "sanitized.hpp"
#include "coll/graph_edges.hpp"
#include "coll/neighbor_exchange.hpp"
#include "collective_world.hpp"

#include <algorithm>
#include <random>

namespace gantry::coll {
namespace {

using Number = std::int64_t;
using Ints = std::vector<int>;

// A grid that is periodic in some dimensions. The tests' own: nothing of mpi/topo/ is used here.
struct Torus {
    Ints dims, periods;

    int size() const {
        int product = 1;
        for (int length : dims)
            product *= length;
        return product;
    }
    Ints coordinates(int rank) const {
        Ints coords(dims.size());
        for (std::size_t i = dims.size(); i-- > 0; rank /= dims[i])
            coords[i] = rank % dims[i];
        return coords;
    }
    int next(int rank, std::size_t dimension, int step) const {
        Ints coords = coordinates(rank);
        const int length = dims[dimension];
        coords[dimension] += step;
        if (coords[dimension] < 0 || coords[dimension] >= length) {
            if (periods[dimension] == 0) return MPI_PROC_NULL;
            coords[dimension] = (coords[dimension] + length) % length;
        }
        int found = 0;
        for (std::size_t i = 0; i < dims.size(); ++i)
            found = found * dims[i] + coords[i];
        return found;
    }
    std::shared_ptr<const Neighbors> neighbors(int rank) const {
        Neighbors found;
        for (std::size_t i = 0; i < dims.size(); ++i)
            for (int step : {-1, 1})
                found.sources.push_back(next(rank, i, step));
        found.destinations = found.sources;
        found.pairing = Neighbors::Pairing::opposite;
        return std::make_shared<const Neighbors>(std::move(found));
    }
};

struct Case {
    Torus torus;
    Place place;
    std::size_t count;
};

// What `rank` sends through face `face` in round `round`.
Number value(int rank, std::size_t face, int round, std::size_t index) {
    return Number{rank} * 1'000'000'000 + static_cast<Number>(face) * 10'000'000 +
           Number{round} * 1'000'000 + static_cast<Number>(index);
}

// Two rounds under one tag, as a persistent operation has them: everybody sends something else
// through each face, and finds in each face what its neighbor there sent through the opposite one.
Task<Status> faces(Executor& executor, Rank& rank, Case test) {
    Everybody everybody(rank);
    const Torus& torus = test.torus;
    const std::size_t number = 2 * torus.dims.size();
    const Team team = everybody.team();
    for (int round = 0; round < 2; ++round) {
        Array<Number> out(rank, test.place, number * test.count);
        Array<Number> in(rank, test.place, number * test.count);
        for (std::size_t face = 0; face < number; ++face)
            for (std::size_t i = 0; i < test.count; ++i) {
                out[face * test.count + i] = value(rank.number, face, round, i);
                in[face * test.count + i] = -7;
            }
        Status stored = co_await out.store(executor);
        GANTRY_CO_TRY(stored);
        stored = co_await in.store(executor);
        GANTRY_CO_TRY(stored);
        Status met =
            co_await neighbor_exchange(executor, team, torus.neighbors(rank.number),
                                       equal_blocks(out, test.count), equal_blocks(in, test.count));
        GANTRY_CO_TRY(met);
        Status loaded = co_await in.load(executor);
        GANTRY_CO_TRY(loaded);
        for (std::size_t face = 0; face < number; ++face) {
            const int from = torus.next(rank.number, face / 2, face % 2 == 0 ? -1 : 1);
            for (std::size_t i = 0; i < test.count; ++i) {
                const Number expected =
                    from == MPI_PROC_NULL ? -7 : value(from, face ^ 1, round, i);
                WORLD_CHECK(in[face * test.count + i] == expected);
            }
        }
    }
    co_return success();
}

world::Options rough(int ranks, std::uint64_t seed) {
    world::Options options;
    options.machine = "h200";
    options.ranks = ranks;
    options.ranks_per_node = 1 + static_cast<int>(seed % 3);
    options.seed = seed;
    options.jitter = 20 * kMicrosecond;
    options.network_order = transport::fake::Order::shuffled;
    return options;
}

void expect_faces(const Case& test, std::uint64_t seed) {
    world::World world(rough(test.torus.size(), seed));
    const world::Ending ending =
        world.run([test](Rank& rank) { return faces(rank.executor, rank, test); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle()) << "something is left, seed " << seed;
}

TEST(NeighborExchange, BringsWhatWasSentThroughTheOppositeFace) {
    // Lengths of 1 and 2 make the same rank a neighbor twice, or this rank its own neighbor.
    const std::vector<Ints> shapes = {{1},       {2},       {3},       {5},          {1, 1},
                                      {2, 1},    {2, 2},    {3, 2},    {1, 2, 3},    {2, 2, 2},
                                      {4, 3, 1}, {3, 3, 3}, {4, 4, 4}, {2, 2, 2, 2}, {7, 1, 2}};
    std::uint64_t seed = 0;
    for (const Ints& dims : shapes) {
        for (const int periods : {0, 1, 2}) {
            Torus torus{dims, Ints(dims.size(), periods % 2)};
            if (periods == 2) torus.periods[0] = 1;  // only the first
            ++seed;
            SCOPED_TRACE(::testing::Message() << ::testing::PrintToString(dims) << ", periods "
                                              << ::testing::PrintToString(torus.periods));
            expect_faces({torus, Place::host, 3}, seed);
            if (torus.size() <= 12) expect_faces({torus, Place::device, 5}, seed);
        }
    }
}

TEST(NeighborExchange, MovesLargeBlocksOfHostAndDeviceMemory) {
    const Torus torus{{2, 3}, {1, 1}};
    for (Place place : {Place::host, Place::device})
        expect_faces({torus, place, 40'000}, 11);
}

TEST(NeighborExchange, OfGridsWithoutDimensionsIsOverAtOnce) {
    expect_faces({Torus{{}, {}}, Place::host, 1}, 1);
}

// A graph that all ranks of a test know. Edges are numbered; each is named by some rank.
struct KnownGraph {
    std::vector<Edge> edges;
    Ints named_by;
};

KnownGraph random_graph(int ranks, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&random](int limit) {
        return static_cast<int>(random() % static_cast<std::uint64_t>(limit));
    };
    KnownGraph graph;
    const int number = below(4 * ranks + 1);
    for (int i = 0; i < number; ++i) {
        // Few different ranks, so that edges repeat and some ranks have none.
        graph.edges.push_back({below(ranks), below(1 + ranks / 2), i});
        graph.named_by.push_back(below(ranks));
    }
    return graph;
}

// The edges, listed by who named them: the order that both ends see.
std::vector<Edge> in_order(const KnownGraph& graph) {
    std::vector<std::size_t> order(graph.edges.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&graph](std::size_t a, std::size_t b) {
        return graph.named_by[a] < graph.named_by[b];
    });
    std::vector<Edge> edges;
    for (std::size_t i : order)
        edges.push_back(graph.edges[i]);
    return edges;
}

// An edge's data: weight + 1 numbers, which say the edge.
Task<Status> graph_exchange(Executor& executor, Rank& rank, Place place, const KnownGraph* graph) {
    Everybody everybody(rank);
    std::vector<Edge> named;
    for (std::size_t i = 0; i < graph->edges.size(); ++i)
        if (graph->named_by[i] == rank.number) named.push_back(graph->edges[i]);
    Adjacency mine;
    Status shared = co_await share_edges(executor, everybody.team(), std::move(named), true, &mine);
    GANTRY_CO_TRY(shared);

    Adjacency expected;
    for (const Edge& edge : in_order(*graph)) {
        if (edge.destination == rank.number) {
            expected.sources.push_back(edge.source);
            expected.source_weights.push_back(edge.weight);
        }
        if (edge.source == rank.number) {
            expected.destinations.push_back(edge.destination);
            expected.destination_weights.push_back(edge.weight);
        }
    }
    WORLD_CHECK(mine.weighted);
    WORLD_CHECK(mine.sources == expected.sources);
    WORLD_CHECK(mine.source_weights == expected.source_weights);
    WORLD_CHECK(mine.destinations == expected.destinations);
    WORLD_CHECK(mine.destination_weights == expected.destination_weights);

    Blocks outgoing, incoming;
    std::int64_t out_end = 0, in_end = 1;  // one number stays before each incoming block
    for (int weight : mine.destination_weights) {
        outgoing.counts.push_back(weight + 1);
        outgoing.displacements.push_back(out_end);
        out_end += weight + 1;
    }
    for (int weight : mine.source_weights) {
        incoming.counts.push_back(weight + 1);
        incoming.displacements.push_back(in_end);
        in_end += weight + 2;
    }
    // The lists may be empty, and then say "equal blocks"; there is no block to ask for.
    Array<Number> out(rank, place, static_cast<std::size_t>(out_end));
    Array<Number> in(rank, place, static_cast<std::size_t>(in_end));
    for (std::size_t block = 0; block < outgoing.counts.size(); ++block)
        for (std::int64_t i = 0; i < outgoing.counts[block]; ++i)
            out[static_cast<std::size_t>(outgoing.displacements[block] + i)] =
                value(0, 0, mine.destination_weights[block], static_cast<std::size_t>(i));
    for (Number& number : in.host())
        number = -7;
    Status stored = co_await out.store(executor);
    GANTRY_CO_TRY(stored);
    stored = co_await in.store(executor);
    GANTRY_CO_TRY(stored);
    outgoing.address = out.address();
    outgoing.layout = &out.layout();
    incoming.address = in.address();
    incoming.layout = &in.layout();
    Neighbors neighbors;
    neighbors.sources = mine.sources;
    neighbors.destinations = mine.destinations;
    auto known = std::make_shared<const Neighbors>(std::move(neighbors));
    Status met = co_await neighbor_exchange(executor, everybody.team(), std::move(known),
                                            std::move(outgoing), incoming);
    GANTRY_CO_TRY(met);
    Status loaded = co_await in.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t block = 0; block < incoming.counts.size(); ++block) {
        const auto first = static_cast<std::size_t>(incoming.displacements[block]);
        WORLD_CHECK(in[first - 1] == -7);
        for (std::size_t i = 0; i < static_cast<std::size_t>(incoming.counts[block]); ++i)
            WORLD_CHECK(in[first + i] == value(0, 0, mine.source_weights[block], i));
    }
    co_return success();
}

void expect_graph(int ranks, std::uint64_t seed, Place place) {
    const KnownGraph graph = random_graph(ranks, seed);
    world::World world(rough(ranks, seed));
    const world::Ending ending = world.run(
        [&graph, place](Rank& rank) { return graph_exchange(rank.executor, rank, place, &graph); });
    ASSERT_TRUE(ending.good()) << ranks << " ranks: " << ending;
    ASSERT_TRUE(world.settle()) << ranks << " ranks, seed " << seed << ": something is left";
}

TEST(DistributedGraph, EdgesReachBothEndsInOneOrderAndCarryTheirBlocks) {
    for (std::uint64_t seed = 1; seed <= repetitions(12); ++seed)
        for (int ranks : {1, 2, 3, 5, 8})
            expect_graph(ranks, seed, seed % 2 == 0 ? Place::device : Place::host);
}

TEST(DistributedGraph, OfManyRanksIsTheSame) {
    for (int ranks : {13, 33, 64})
        expect_graph(ranks, static_cast<std::uint64_t>(ranks), Place::host);
}

// Ranks 0 and 2 name an edge with a weight. Rank 1 names none, and says that there are no weights.
Task<Status> follow(Executor& executor, Rank& rank) {
    Everybody everybody(rank);
    std::vector<Edge> named;
    if (rank.number != 1) named.push_back({rank.number, 1, 4 + rank.number});
    Adjacency mine;
    Status shared =
        co_await share_edges(executor, everybody.team(), std::move(named), rank.number != 1, &mine);
    GANTRY_CO_TRY(shared);
    WORLD_CHECK(mine.weighted);
    WORLD_CHECK(mine.source_weights.size() == (rank.number == 1 ? 2u : 0u));
    co_return success();
}

TEST(DistributedGraph, HasTheWeightsOfThoseWhoNameEdges) {
    world::World world(rough(3, 4));
    const world::Ending ending = world.run([](Rank& rank) { return follow(rank.executor, rank); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
}

Task<Status> disagree(Executor& executor, Rank& rank) {
    Everybody everybody(rank);
    std::vector<Edge> named;
    named.push_back({rank.number, 0, 1});
    Adjacency mine;
    Status shared =
        co_await share_edges(executor, everybody.team(), std::move(named), rank.number == 2, &mine);
    WORLD_CHECK(shared.error_class() == MPI_ERR_ARG);
    WORLD_CHECK(shared.text().find("MPI_UNWEIGHTED") != std::string_view::npos);
    co_return success();
}

TEST(DistributedGraph, TellsAllRanksThatOnlySomePassedWeights) {
    world::World world(rough(5, 3));
    const world::Ending ending =
        world.run([](Rank& rank) { return disagree(rank.executor, rank); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
}

// Rank 0 has room for one number of the two that its neighbors send.
Task<Status> too_long(Executor& executor, Rank& rank) {
    Everybody everybody(rank);
    const Torus ring{{everybody.size()}, {1}};
    Array<Number> out(rank, Place::host, 4), in(rank, Place::host, 4);
    Blocks outgoing = equal_blocks(out, 2), incoming = equal_blocks(in, rank.number == 0 ? 1 : 2);
    Status met = co_await neighbor_exchange(executor, everybody.team(), ring.neighbors(rank.number),
                                            outgoing, incoming);
    WORLD_CHECK(met.error_class() == (rank.number == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    co_return success();
}

TEST(NeighborExchange, ThatIsTooLongForOneRankEndsOnAll) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
        world::World world(rough(ranks, 7));
        const world::Ending ending =
            world.run([](Rank& rank) { return too_long(rank.executor, rank); });
        ASSERT_TRUE(ending.good()) << ranks << " ranks: " << ending;
        ASSERT_TRUE(world.settle());
    }
}

}  // namespace
}  // namespace gantry::coll

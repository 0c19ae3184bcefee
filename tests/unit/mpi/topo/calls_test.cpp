// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of the chapter in a job of one rank: what a topology tells, what is refused and how,
// and what duplicates inherit. More ranks: tests/mpi/topologies.cpp.
#include "mpi/comm/comm.hpp"
#include "mpi/topo/topology.hpp"
#include "unit/mpi/running.hpp"

namespace gantry::mpi {
namespace {

using Ints = std::vector<int>;

class Topologies : public RunningMpi {
  protected:
    Comm& cart(Ints dims, Ints periods) {
        MPI_Comm made = MPI_COMM_NULL;
        expect_ok(wait(cart_create(world(), static_cast<int>(dims.size()), dims.data(),
                                   periods.data(), 1, &made)));
        return *find(made);
    }
    Comm& graph(Ints index, Ints edges) {
        MPI_Comm made = MPI_COMM_NULL;
        expect_ok(wait(graph_create(world(), static_cast<int>(index.size()), index.data(),
                                    edges.data(), 1, &made)));
        return *find(made);
    }
    // Two edges from this rank to itself.
    Comm& dist_graph(const int* weights) {
        MPI_Comm made = MPI_COMM_NULL;
        const int source = 0, degree = 2, destinations[] = {0, 0};
        expect_ok(wait(dist_graph_create(world(), 1, &source, &degree, destinations, weights,
                                         nullptr, 1, &made)));
        return *find(made);
    }
    void free(Comm& comm) {
        MPI_Comm handle = comm.handle;
        expect_ok(wait(comm_free(&handle)));
    }
    static int kind(Comm& comm) {
        int found = -1;
        expect_ok(topo_test(comm, &found));
        return found;
    }
};

void expect_words(const Status& status, int error_class, std::initializer_list<const char*> words) {
    expect_class(status, error_class);
    for (const char* word : words)
        EXPECT_NE(status.text().find(word), std::string_view::npos) << status.text();
}

TEST_F(Topologies, AreToldByKind) {
    const int weights[] = {4, 5};
    Comm &grid = cart({1}, {1}), &whole = graph({1}, {0}), &distributed = dist_graph(weights);
    EXPECT_EQ(kind(grid), MPI_CART);
    EXPECT_EQ(kind(whole), MPI_GRAPH);
    EXPECT_EQ(kind(distributed), MPI_DIST_GRAPH);
    EXPECT_EQ(kind(world()), MPI_UNDEFINED);
    for (Comm* comm : {&grid, &whole, &distributed})
        free(*comm);
}

TEST_F(Topologies, GoToDuplicatesButNotToPartsOfASplit) {
    const int weights[] = {4, 5};
    for (Comm* comm : {&cart({1, 1}, {1, 0}), &graph({1}, {0}), &dist_graph(weights)}) {
        MPI_Comm dup = MPI_COMM_NULL, half = MPI_COMM_NULL;
        expect_ok(wait(blocking(*comm, comm_dup(*comm, &dup))));
        expect_ok(wait(comm_split(*comm, 0, 0, &half)));
        EXPECT_EQ(kind(*find(dup)), kind(*comm));
        EXPECT_EQ(kind(*find(half)), MPI_UNDEFINED);
        free(*find(half));
        free(*comm);
        // The duplicate's topology outlives the original.
        int in = -1, out = -1;
        in = blocks_in(*find(dup));
        out = blocks_out(*find(dup));
        EXPECT_EQ(in, out);
        EXPECT_GT(in, 0);
        free(*find(dup));
    }
}

TEST_F(Topologies, OfAnotherKindAreRefusedBySentence) {
    Comm& grid = cart({1}, {0});
    int number = -1;
    expect_words(cartdim_get(world(), &number), MPI_ERR_TOPOLOGY,
                 {"no topology", "a Cartesian", "MPI_Cart_create"});
    expect_words(graphdims_get(grid, &number, &number), MPI_ERR_TOPOLOGY,
                 {"has a Cartesian topology", "a graph"});
    expect_words(dist_graph_neighbors_count(grid, &number, &number, &number), MPI_ERR_TOPOLOGY,
                 {"a distributed graph", "MPI_Dist_graph_create"});
    Datatype& byte = type(MPI_BYTE);
    char nothing = 0;
    const Result<CollectiveCall> call =
        neighbor_alltoall(&nothing, 1, byte, &nothing, 1, byte, world());
    expect_words(call.status(), MPI_ERR_TOPOLOGY, {"no topology", "neighbor"});
    free(grid);
}

TEST_F(Topologies, WithoutDimensionsHaveOneProcess) {
    Comm& point = cart({}, {});
    int number = -1, source = -1, dest = -1;
    expect_ok(cartdim_get(point, &number));
    EXPECT_EQ(number, 0);
    expect_ok(cart_get(point, 0, nullptr, nullptr, nullptr));
    expect_ok(cart_rank(point, nullptr, &number));
    EXPECT_EQ(number, 0);
    expect_ok(cart_coords(point, 0, 0, nullptr));
    expect_words(cart_shift(point, 0, 1, &source, &dest), MPI_ERR_DIMS, {"direction"});
    MPI_Comm part = MPI_COMM_NULL;
    expect_ok(wait(cart_sub(point, nullptr, &part)));
    EXPECT_EQ(kind(*find(part)), MPI_CART);
    free(*find(part));
    free(point);
}

TEST_F(Topologies, ArgumentsOfGridsAreRefusedBySentence) {
    Comm& grid = cart({1, 1}, {0, 1});
    int dims[2], periods[2], coords[2] = {1, 0}, rank = -1, other = -1;
    expect_words(cart_get(grid, 1, dims, periods, coords), MPI_ERR_ARG,
                 {"maxdims is 1", "at least 2"});
    expect_words(cart_coords(grid, 0, 1, coords), MPI_ERR_ARG, {"maxdims"});
    coords[0] = 1;
    expect_words(cart_rank(grid, coords, &rank), MPI_ERR_ARG, {"coords[0] is 1", "periodic"});
    expect_words(cart_rank(grid, nullptr, &rank), MPI_ERR_ARG, {"coords", "null"});
    expect_words(cart_shift(grid, 2, 1, &rank, &other), MPI_ERR_DIMS, {"direction is 2"});
    expect_words(cart_shift(grid, -1, 1, &rank, &other), MPI_ERR_DIMS, {"direction is -1"});
    MPI_Comm made = MPI_COMM_NULL;
    expect_words(wait(cart_sub(grid, nullptr, &made)), MPI_ERR_ARG, {"remain_dims"});
    const int large[] = {1, 2};
    expect_words(wait(cart_create(world(), 2, large, periods, 0, &made)), MPI_ERR_DIMS,
                 {"more processes than the 1"});
    expect_class(cart_map(world(), -1, nullptr, nullptr, &rank), MPI_ERR_DIMS);
    free(grid);
}

TEST_F(Topologies, GraphsThatAreDescribedBadlyAreRefused) {
    MPI_Comm made = MPI_COMM_NULL;
    int index[] = {1}, edges[] = {0}, newrank = -1;
    expect_words(wait(graph_create(world(), -1, index, edges, 0, &made)), MPI_ERR_ARG, {"nnodes"});
    expect_words(wait(graph_create(world(), 2, index, edges, 0, &made)), MPI_ERR_ARG,
                 {"nnodes is 2", "at most 1"});
    expect_words(wait(graph_create(world(), 1, index, nullptr, 0, &made)), MPI_ERR_ARG,
                 {"edges", "null"});
    edges[0] = 1;
    expect_words(graph_map(world(), 1, index, edges, &newrank), MPI_ERR_ARG,
                 {"edges[0] is 1", "0 and 0"});
    index[0] = -1;
    expect_words(wait(graph_create(world(), 1, index, edges, 0, &made)), MPI_ERR_ARG,
                 {"index[0] is -1"});
    EXPECT_EQ(made, MPI_COMM_NULL);
    expect_ok(wait(graph_create(world(), 0, nullptr, nullptr, 0, &made)));
    EXPECT_EQ(made, MPI_COMM_NULL);
    Comm& whole = graph({1}, {0});
    int number = -1;
    expect_words(graph_neighbors(whole, 0, 0, &number), MPI_ERR_ARG, {"maxneighbors"});
    expect_words(graph_get(whole, 1, 0, &number, &number), MPI_ERR_ARG, {"maxedges"});
    free(whole);
}

TEST_F(Topologies, WeightsAreKeptAndMissingOnesToldApart) {
    const int weights[] = {4, 5};
    Comm &heavy = dist_graph(weights), &light = dist_graph(MPI_UNWEIGHTED);
    int in = -1, out = -1, weighted = -1;
    expect_ok(dist_graph_neighbors_count(light, &in, &out, &weighted));
    EXPECT_EQ(Ints({in, out, weighted}), (Ints{2, 2, 0}));
    expect_ok(dist_graph_neighbors_count(heavy, &in, &out, &weighted));
    EXPECT_EQ(Ints({in, out, weighted}), (Ints{2, 2, 1}));
    int sources[2] = {-1, -1}, destinations[2] = {-1, -1}, from[2] = {-1, -1}, to[2] = {-1, -1};
    expect_ok(dist_graph_neighbors(heavy, 2, sources, from, 1, destinations, to));
    EXPECT_EQ(Ints({sources[0], sources[1], from[0], from[1]}), (Ints{0, 0, 4, 5}));
    EXPECT_EQ(Ints({destinations[0], destinations[1], to[0], to[1]}), (Ints{0, -1, 4, -1}));
    expect_ok(
        dist_graph_neighbors(light, 2, sources, MPI_UNWEIGHTED, 2, destinations, MPI_UNWEIGHTED));
    expect_words(dist_graph_neighbors(heavy, 2, sources, MPI_UNWEIGHTED, 2, destinations, to),
                 MPI_ERR_ARG, {"sourceweights"});
    free(heavy);
    free(light);
}

TEST_F(Topologies, DistributedGraphsThatAreDescribedBadlyAreRefused) {
    MPI_Comm made = MPI_COMM_NULL;
    const int zero = 0, one = 1, minus[] = {-99};
    const auto adjacent = [&](int in, const int* sources, const int* from, int out,
                              const int* destinations, const int* to) {
        return wait(dist_graph_create_adjacent(world(), in, sources, from, out, destinations, to,
                                               nullptr, 0, &made));
    };
    expect_words(adjacent(1, &one, MPI_UNWEIGHTED, 0, nullptr, MPI_UNWEIGHTED), MPI_ERR_RANK,
                 {"sources[0] is 1"});
    expect_words(adjacent(0, nullptr, MPI_UNWEIGHTED, 1, minus, MPI_UNWEIGHTED), MPI_ERR_RANK,
                 {"destinations[0] is -99"});
    expect_words(adjacent(1, &zero, MPI_UNWEIGHTED, 1, &zero, &one), MPI_ERR_ARG,
                 {"sourceweights is MPI_UNWEIGHTED", "destweights"});
    expect_words(adjacent(1, &zero, MPI_WEIGHTS_EMPTY, 0, nullptr, MPI_WEIGHTS_EMPTY), MPI_ERR_ARG,
                 {"sourceweights", "MPI_WEIGHTS_EMPTY", "1 edges"});
    expect_words(adjacent(1, &zero, minus, 0, nullptr, MPI_WEIGHTS_EMPTY), MPI_ERR_ARG,
                 {"sourceweights[0] is -99"});
    expect_words(adjacent(1, &zero, nullptr, 0, nullptr, nullptr), MPI_ERR_ARG,
                 {"sourceweights", "null", "MPI_UNWEIGHTED"});
    const int two = 2, ranks[] = {0, 1};
    expect_words(
        wait(dist_graph_create(world(), 1, &zero, &two, ranks, MPI_UNWEIGHTED, nullptr, 0, &made)),
        MPI_ERR_RANK, {"destinations[1] is 1"});
    expect_words(wait(dist_graph_create(world(), 1, &zero, &two, nullptr, MPI_UNWEIGHTED, nullptr,
                                        0, &made)),
                 MPI_ERR_ARG, {"destinations", "null"});
    EXPECT_EQ(made, MPI_COMM_NULL);
    // Nothing at all is good.
    expect_ok(adjacent(0, nullptr, MPI_WEIGHTS_EMPTY, 0, nullptr, MPI_WEIGHTS_EMPTY));
    free(*find(made));
    expect_ok(wait(dist_graph_create(world(), 0, nullptr, nullptr, nullptr, MPI_WEIGHTS_EMPTY,
                                     nullptr, 0, &made)));
    free(*find(made));
}

}  // namespace
}  // namespace gantry::mpi

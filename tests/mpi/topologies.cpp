// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators with a topology among real processes: who is where, what parts of a grid and
// duplicates are, and what is said to wrong arguments. Neighbor collectives: neighbors.cpp.
#include "communicators.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <functional>
#include <numeric>
#include <vector>

using namespace mpi_tests;

namespace {

using Ints = std::vector<int>;

int kind_of(MPI_Comm comm) {
    int found = -1;
    OK(MPI_Topo_test(comm, &found));
    return found;
}

// Every rank's number, sent to the next one: the communicator carries messages between the ranks
// that it says.
void expect_ring(MPI_Comm comm) {
    const int mine = rank_in(comm), count = size_of(comm);
    int before = -1;
    OK(MPI_Sendrecv(&mine, 1, MPI_INT, (mine + 1) % count, 0, &before, 1, MPI_INT,
                    (mine + count - 1) % count, 0, comm, MPI_STATUS_IGNORE));
    CHECK_EQ(before, (mine + count - 1) % count);
}

// A grid, asked about everything that it can tell.
void expect_grid(MPI_Comm comm, const Ints& dims, const Ints& periods) {
    const int number = static_cast<int>(dims.size()), me = rank_in(comm);
    int ndims = -1;
    OK(MPI_Cartdim_get(comm, &ndims));
    CHECK_EQ(ndims, number);
    CHECK_EQ(kind_of(comm), MPI_CART);
    Ints told_dims(dims.size()), told_periods(dims.size()), coords(dims.size());
    OK(MPI_Cart_get(comm, number, told_dims.data(), told_periods.data(), coords.data()));
    CHECK(told_dims == dims);
    CHECK(told_periods == periods);
    int again = -1;
    OK(MPI_Cart_rank(comm, coords.data(), &again));
    CHECK_EQ(again, me);
    for (int other = 0; other < size_of(comm); ++other) {
        Ints at(dims.size());
        OK(MPI_Cart_coords(comm, other, number, at.data()));
        int row_by_row = 0;
        for (std::size_t i = 0; i < dims.size(); ++i)
            row_by_row = row_by_row * dims[i] + at[i];
        CHECK_EQ(row_by_row, other);
    }
    for (int dimension = 0; dimension < number; ++dimension) {
        const auto i = static_cast<std::size_t>(dimension);
        for (int step : {-3, -1, 0, 1, 2}) {
            int source = -1, dest = -1;
            OK(MPI_Cart_shift(comm, dimension, step, &source, &dest));
            Ints there = coords;
            there[i] += step;
            int expected = MPI_PROC_NULL;
            if (periods[i] != 0 || (there[i] >= 0 && there[i] < dims[i]))
                OK(MPI_Cart_rank(comm, there.data(), &expected));
            CHECK_EQ(dest, expected);
            // What I send there comes from me.
            int from = -1, ignored = -1, mine = me;
            OK(MPI_Sendrecv(&mine, 1, MPI_INT, dest, step + 10, &from, 1, MPI_INT, source,
                            step + 10, comm, MPI_STATUS_IGNORE));
            if (source != MPI_PROC_NULL) CHECK_EQ(from, source);
            OK(MPI_Cart_shift(comm, dimension, -step, &ignored, &expected));
            CHECK_EQ(source, expected);
        }
    }
}

// Lines, planes and points of a grid.
void expect_parts(MPI_Comm comm, const Ints& dims, const Ints& periods) {
    for (int chosen = 0; chosen < 1 << dims.size(); ++chosen) {
        Ints remain(dims.size()), part_dims, part_periods, whole_at(dims.size());
        OK(MPI_Cart_coords(comm, rank_in(comm), static_cast<int>(dims.size()), whole_at.data()));
        Ints expected_at;
        for (std::size_t i = 0; i < dims.size(); ++i) {
            remain[i] = chosen >> i & 1;
            if (remain[i] == 0) continue;
            part_dims.push_back(dims[i]);
            part_periods.push_back(periods[i]);
            expected_at.push_back(whole_at[i]);
        }
        MPI_Comm part = MPI_COMM_NULL;
        OK(MPI_Cart_sub(comm, remain.data(), &part));
        expect_grid(part, part_dims, part_periods);
        Ints at(part_dims.size());
        OK(MPI_Cart_coords(part, rank_in(part), static_cast<int>(at.size()), at.data()));
        CHECK(at == expected_at);
        expect_ring(part);
        OK(MPI_Comm_free(&part));
    }
}

void grids(const std::vector<Ints>& shapes) {
    for (const Ints& dims : shapes) {
        for (int reorder : {0, 1}) {
            Ints periods(dims.size());
            for (std::size_t i = 0; i < dims.size(); ++i)
                periods[i] = static_cast<int>(i + static_cast<std::size_t>(reorder)) % 2;
            const int number = static_cast<int>(dims.size());
            const int needed = std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<int>());
            MPI_Comm comm = MPI_COMM_WORLD;
            int mapped = -2;
            OK(MPI_Cart_map(MPI_COMM_WORLD, number, dims.data(), periods.data(), &mapped));
            OK(MPI_Cart_create(MPI_COMM_WORLD, number, dims.data(), periods.data(), reorder,
                               &comm));
            CHECK((comm == MPI_COMM_NULL) == (rank() >= needed));
            CHECK((mapped == MPI_UNDEFINED) == (rank() >= needed));
            if (comm == MPI_COMM_NULL) continue;
            CHECK_EQ(size_of(comm), needed);
            if (reorder != 0) CHECK_EQ(rank_in(comm), mapped);
            if (reorder == 0) CHECK_EQ(rank_in(comm), rank());
            expect_grid(comm, dims, periods);
            expect_parts(comm, dims, periods);
            MPI_Comm dup = MPI_COMM_NULL, idup = MPI_COMM_NULL, split = MPI_COMM_NULL;
            MPI_Request request = MPI_REQUEST_NULL;
            OK(MPI_Comm_dup(comm, &dup));
            OK(MPI_Comm_idup(comm, &idup, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Comm_split(comm, 0, 0, &split));
            CHECK_EQ(kind_of(split), MPI_UNDEFINED);
            OK(MPI_Comm_free(&comm));
            expect_grid(dup, dims, periods);
            expect_grid(idup, dims, periods);
            for (MPI_Comm* each : {&dup, &idup, &split})
                OK(MPI_Comm_free(each));
        }
    }
    expect_ring(MPI_COMM_WORLD);
}

}  // namespace

MPI_CASE(grids_of_1, 1) {
    grids({{}, {1}, {1, 1, 1}});
}
MPI_CASE(grids_of_2, 2) {
    grids({{}, {2}, {1, 2}, {2, 1, 1}});
}
MPI_CASE(grids_of_6, 6) {
    grids({{6}, {2, 3}, {5}, {1, 3, 2}, {2, 2}, {}});
}
MPI_CASE(grids_of_8, 8) {
    grids({{2, 2, 2}, {7}, {4, 2}, {3, 1, 2}});
}

MPI_CASE(graphs_are_known_to_everybody, 4) {
    // The example of the standard: 0: 1 3; 1: 0; 2: 3; 3: 0 2.
    const Ints index = {2, 3, 4, 6}, edges = {1, 3, 0, 3, 0, 2};
    MPI_Comm comm = MPI_COMM_NULL, small = MPI_COMM_NULL;
    OK(MPI_Graph_create(MPI_COMM_WORLD, 4, index.data(), edges.data(), 1, &comm));
    CHECK_EQ(kind_of(comm), MPI_GRAPH);
    int nnodes = -1, nedges = -1, newrank = -1;
    OK(MPI_Graphdims_get(comm, &nnodes, &nedges));
    CHECK_EQ(nnodes, 4);
    CHECK_EQ(nedges, 6);
    Ints told_index(4), told_edges(6);
    OK(MPI_Graph_get(comm, 4, 6, told_index.data(), told_edges.data()));
    CHECK(told_index == index);
    CHECK(told_edges == edges);
    for (int node = 0; node < 4; ++node) {
        const int begin = node == 0 ? 0 : index[static_cast<std::size_t>(node) - 1];
        const Ints expected(edges.begin() + begin,
                            edges.begin() + index[static_cast<std::size_t>(node)]);
        int count = -1;
        OK(MPI_Graph_neighbors_count(comm, node, &count));
        CHECK_EQ(count, expected.size());
        Ints found(expected.size());
        OK(MPI_Graph_neighbors(comm, node, count, found.data()));
        CHECK(found == expected);
    }
    OK(MPI_Graph_map(MPI_COMM_WORLD, 4, index.data(), edges.data(), &newrank));
    CHECK_EQ(newrank, rank_in(comm));
    expect_ring(comm);
    OK(MPI_Comm_free(&comm));
    const Ints pair = {1, 2}, ends = {1, 0};
    OK(MPI_Graph_create(MPI_COMM_WORLD, 2, pair.data(), ends.data(), 0, &small));
    CHECK((small == MPI_COMM_NULL) == (rank() >= 2));
    OK(MPI_Graph_map(MPI_COMM_WORLD, 2, pair.data(), ends.data(), &newrank));
    CHECK_EQ(newrank, rank() < 2 ? rank() : MPI_UNDEFINED);
    if (small != MPI_COMM_NULL) {
        expect_ring(small);
        OK(MPI_Comm_free(&small));
    }
}

MPI_CASE(distributed_graphs_tell_each_rank_its_own_edges, 4) {
    // Rank 0 names all edges: r -> r + 1 with weight 10 + r, twice from rank 2.
    const Ints sources = {0, 1, 2, 3}, degrees = {1, 1, 2, 1}, destinations = {1, 2, 3, 3, 0},
               weights = {10, 11, 12, 22, 13};
    MPI_Comm comm = MPI_COMM_NULL, adjacent = MPI_COMM_NULL;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank() == 0 ? 4 : 0, sources.data(), degrees.data(),
                             destinations.data(), rank() == 0 ? weights.data() : MPI_WEIGHTS_EMPTY,
                             MPI_INFO_NULL, 1, &comm));
    CHECK_EQ(kind_of(comm), MPI_DIST_GRAPH);
    const int me = rank(), before = (me + 3) % 4, after = (me + 1) % 4;
    const int in = me == 3 ? 2 : 1, out = me == 2 ? 2 : 1;
    Ints from(2, -1), from_weights(2, -1), to(2, -1), to_weights(2, -1);
    const auto ask = [&](MPI_Comm of) {
        int indegree = -1, outdegree = -1, weighted = -1;
        OK(MPI_Dist_graph_neighbors_count(of, &indegree, &outdegree, &weighted));
        CHECK_EQ(indegree, in);
        CHECK_EQ(outdegree, out);
        CHECK_EQ(weighted, 1);
        OK(MPI_Dist_graph_neighbors(of, in, from.data(), from_weights.data(), out, to.data(),
                                    to_weights.data()));
        CHECK_EQ(from[0], before);
        CHECK_EQ(from_weights[0], 10 + before);
        CHECK_EQ(to[0], after);
        CHECK_EQ(to_weights[0], 10 + me);
        if (me == 3) CHECK_EQ(from_weights[1], 22);
        if (me == 2) CHECK_EQ(to_weights[1], 22);
    };
    ask(comm);
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, from.data(), from_weights.data(), out,
                                      to.data(), to_weights.data(), MPI_INFO_NULL, 1, &adjacent));
    MPI_Comm dup = MPI_COMM_NULL;
    OK(MPI_Comm_dup(adjacent, &dup));
    OK(MPI_Comm_free(&adjacent));
    ask(dup);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&comm));
}

// MPI_PROC_NULL is a neighbor like those beside the ends of a grid: its block is neither sent nor written.
MPI_CASE(distributed_graphs_have_neighbors_that_are_nobody, 3) {
    const int me = rank(), before = me > 0 ? me - 1 : MPI_PROC_NULL,
              after = me < 2 ? me + 1 : MPI_PROC_NULL;
    MPI_Comm comms[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
    const Ints neighbors = {before, after};
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, neighbors.data(), MPI_UNWEIGHTED, 2,
                                      neighbors.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &comms[0]));
    // Rank 2 names all edges; each rank's stand in the same order.
    const Ints sources = {MPI_PROC_NULL, 0, 1, 2}, degrees = {1, 2, 2, 2},
               destinations = {0, MPI_PROC_NULL, 1, 0, 2, 1, MPI_PROC_NULL};
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, me == 2 ? 4 : 0, sources.data(), degrees.data(),
                             destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comms[1]));
    for (MPI_Comm& comm : comms) {
        int in = -1, out = -1, weighted = -1;
        OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
        about("rank " + std::to_string(me) + (comm == comms[0] ? ", adjacent" : ", named by one"));
        // The last one has no edge from nobody in the second graph.
        CHECK_EQ(in, comm == comms[1] && me == 2 ? 1 : 2);
        CHECK_EQ(out, 2);
        Ints from(2, -9), to(2, -9);
        OK(MPI_Dist_graph_neighbors(comm, in, from.data(), MPI_UNWEIGHTED, out, to.data(),
                                    MPI_UNWEIGHTED));
        CHECK_EQ(from[0], before);
        Ints got(2, -1);
        OK(MPI_Neighbor_allgather(&me, 1, MPI_INT, got.data(), 1, MPI_INT, comm));
        for (int i = 0; i < in; ++i)
            CHECK_EQ(got[static_cast<std::size_t>(i)],
                     from[static_cast<std::size_t>(i)] == MPI_PROC_NULL
                         ? -1
                         : from[static_cast<std::size_t>(i)]);
        OK(MPI_Comm_free(&comm));
    }
    about("");
}

MPI_CASE(topologies_refuse_by_sentence, 2) {
    return_errors(MPI_COMM_WORLD);
    const int dims[] = {2}, periods[] = {1}, large[] = {2, 2}, both[] = {1, 1};
    MPI_Comm comm = MPI_COMM_NULL, none = MPI_COMM_NULL;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm));  // inherits the handler
    int number = -1, in = -1;
    expect(MPI_Cart_create(MPI_COMM_WORLD, 2, large, both, 0, &none), MPI_ERR_DIMS,
           {"MPI_Cart_create", "more processes than the 2"}, "a large grid");
    expect(MPI_Cart_create(MPI_COMM_WORLD, 1, nullptr, periods, 0, &none), MPI_ERR_ARG,
           {"dims", "null"}, "no dims");
    expect(MPI_Cartdim_get(MPI_COMM_WORLD, &number), MPI_ERR_TOPOLOGY,
           {"no topology", "MPI_Cart_create"}, "no grid");
    expect(MPI_Graphdims_get(comm, &number, &number), MPI_ERR_TOPOLOGY, {"Cartesian", "graph"},
           "no graph");
    expect(MPI_Cart_coords(comm, 2, 1, &number), MPI_ERR_RANK, {"rank is 2"}, "no such rank");
    expect(MPI_Cart_shift(comm, 1, 1, &number, &number), MPI_ERR_DIMS, {"direction is 1"},
           "no such dimension");
    expect(MPI_Neighbor_alltoall(&number, 1, MPI_INT, &in, 1, MPI_INT, MPI_COMM_WORLD),
           MPI_ERR_TOPOLOGY, {"MPI_Neighbor_alltoall", "no topology"}, "no neighbors");
    MPI_Request request = MPI_REQUEST_NULL;
    expect(MPI_Ineighbor_allgather(&number, 1, MPI_INT, &in, 1, MPI_INT, MPI_COMM_WORLD, &request),
           MPI_ERR_TOPOLOGY, {"no topology"}, "no neighbors, nonblocking");
    expect(MPI_Neighbor_alltoall(&number, -1, MPI_INT, &in, 1, MPI_INT, comm), MPI_ERR_COUNT,
           {"sendcount"}, "a negative count");
    expect(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, &in, 1, MPI_INT, comm), MPI_ERR_BUFFER,
           {"sendbuf", "MPI_IN_PLACE"}, "in place");
    const int counts[] = {1, -1}, displs[] = {0, 1};
    expect(MPI_Neighbor_alltoallv(&number, counts, displs, MPI_INT, &in, counts, displs, MPI_INT,
                                  comm),
           MPI_ERR_COUNT, {"sendcounts[1]"}, "a negative count in a list");
    expect(MPI_Neighbor_alltoallv(&number, nullptr, displs, MPI_INT, &in, counts, displs, MPI_INT,
                                  comm),
           MPI_ERR_ARG, {"sendcounts", "null"}, "no counts");
    CHECK(none == MPI_COMM_NULL);
    // Weights on one rank only: both learn of it.
    const int me = rank(), one = 1, other = 1 - rank(), weight = 5;
    expect(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &one, &other,
                                 rank() == 0 ? &weight : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &none),
           MPI_ERR_ARG, {"MPI_UNWEIGHTED", "all ranks"}, "weights here and not there");
    CHECK(none == MPI_COMM_NULL);
    expect_alive(comm);
    OK(MPI_Comm_free(&comm));
}

// Four ranks that are dealt out over two nodes: run by nodes_test.py, which looks at the log, too.
MPI_CASE_ENDING(grid_over_two_nodes, 4) {
    const int dims[] = {4}, periods[] = {0};
    MPI_Comm comm = MPI_COMM_NULL;
    int mapped = -1;
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &mapped));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &comm));
    const int expected[] = {0, 2, 1, 3};  // ranks 0 and 2 are on the first node
    CHECK_EQ(rank_in(comm), expected[rank()]);
    CHECK_EQ(rank_in(comm), mapped);
    expect_grid(comm, {4}, {0});
    expect_ring(comm);
    const int out[] = {10 * rank_in(comm), 10 * rank_in(comm) + 1};
    int in[] = {-1, -1};
    OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm));
    CHECK_EQ(in[0], rank_in(comm) == 0 ? -1 : 10 * (rank_in(comm) - 1) + 1);
    CHECK_EQ(in[1], rank_in(comm) == 3 ? -1 : 10 * (rank_in(comm) + 1));
    OK(MPI_Comm_free(&comm));
}

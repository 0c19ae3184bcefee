// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_CHECK=1: the v and w forms, and collectives of neighbors. What a rank sends to another one
// is what that one expects from it, or all ranks fail with the sentence that names both and nothing
// is written; arguments that do not count are not looked at.
#include "checked.hpp"
#include "gpu.hpp"
#include "test.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

using Ints = std::vector<int>;
using Types = std::vector<MPI_Datatype>;

constexpr int kRanks = 4;
const MPI_Comm kWorld = MPI_COMM_WORLD;

// The blocks of one rank: `each` ints, and where one of them is another number of ints.
struct Blocks {
    Ints counts, places, byte_places;
    Types types;

    explicit Blocks(int each, int blocks = kRanks) {
        for (int block = 0; block < blocks; ++block) {
            counts.push_back(each);
            places.push_back(block * 8);
            byte_places.push_back(block * 32);
            types.push_back(MPI_INT);
        }
    }
    Blocks with(int block, int count) const {
        Blocks other = *this;
        other.counts[static_cast<std::size_t>(block)] = count;
        return other;
    }
    Blocks with(int block, int count, MPI_Datatype type) const {
        Blocks other = with(block, count);
        other.types[static_cast<std::size_t>(block)] = type;
        return other;
    }
    std::vector<MPI_Aint> aints() const { return {byte_places.begin(), byte_places.end()}; }
    const int* n() const { return counts.data(); }
    const int* at() const { return places.data(); }
    const int* bytes() const { return byte_places.data(); }
    const MPI_Datatype* t() const { return types.data(); }
};

Ints nothing() {
    return Ints(kRanks * 8, -1);
}

// The numbers that lie in places of the blocks; -1 elsewhere.
Ints filled(const Blocks& blocks, const Ints& values) {
    Ints all = nothing();
    for (std::size_t block = 0; block < values.size(); ++block)
        for (int i = 0; i < blocks.counts[block]; ++i)
            all[static_cast<std::size_t>(blocks.places[block] + i)] = values[block];
    return all;
}

void expect_the_next_to_work() {
    int sum = 0;
    const int one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, kWorld));
    CHECK_EQ(sum, size());
}

std::string differ(int from, const char* sent, int to, const char* received) {
    return "rank " + std::to_string(from) + " sends " + sent + " to rank " + std::to_string(to) +
           ", which receives " + received + " from it";
}

}  // namespace

MPI_CASE_OWN_INIT(checked_gatherv_compares_senders_with_the_root, 4) {
    start_checked();
    const bool root = rank() == 1;
    const Blocks two(2);
    const Ints out(8, rank());
    Ints in = nothing();
    const auto count = [](int odd, int other) { return rank() == odd ? other : 2; };
    IN_EVERY_FORM(
        (Refusal{"longer", MPI_ERR_COUNT, differ(2, "3 of MPI_INT", 1, "2 of MPI_INT"), &in}),
        Gatherv, Igatherv, out.data(), count(2, 3), MPI_INT, in.data(), two.n(), two.at(), MPI_INT,
        1, kWorld);
    IN_EVERY_FORM(
        (Refusal{"shorter", MPI_ERR_COUNT, differ(3, "1 of MPI_INT", 1, "2 of MPI_INT"), &in}),
        Gatherv, Igatherv, out.data(), count(3, 1), MPI_INT, in.data(), two.n(), two.at(), MPI_INT,
        1, kWorld);
    IN_EVERY_FORM((Refusal{"another type", MPI_ERR_TYPE,
                           differ(0, "2 of MPI_FLOAT", 1, "2 of MPI_INT"), &in}),
                  Gatherv, Igatherv, out.data(), 2, rank() == 0 ? MPI_FLOAT : MPI_INT, in.data(),
                  two.n(), two.at(), MPI_INT, 1, kWorld);
    IN_EVERY_FORM((Refusal{"the root's own", MPI_ERR_COUNT,
                           differ(1, "1 of MPI_INT", 1, "2 of MPI_INT"), &in}),
                  Gatherv, Igatherv, out.data(), count(1, 1), MPI_INT, in.data(), two.n(), two.at(),
                  MPI_INT, 1, kWorld);
    IN_EVERY_FORM(
        (Refusal{"another root", MPI_ERR_ROOT, "rank 3 names root 0, rank 0 names root 1", &in}),
        Gatherv, Igatherv, out.data(), 2, MPI_INT, in.data(), two.n(), two.at(), MPI_INT,
        rank() == 3 ? 0 : 1, kWorld);
    // What counts at the root alone, in place, without data, as bytes.
    const Blocks uneven = two.with(0, 0).with(3, 4);
    const int sent = uneven.counts[static_cast<std::size_t>(rank())];
    const Ints wanted = root ? filled(uneven, {0, 1, 2, 3}) : nothing();
    const int* const counts = root ? uneven.n() : nullptr;
    const int* const places = root ? uneven.at() : nullptr;
    const bool bytes = rank() == 3;
    IN_EVERY_FORM((Written{"right", in, wanted}), Gatherv, Igatherv, out.data(),
                  bytes ? 4 * sent : sent,
                  sent == 0 ? MPI_DATATYPE_NULL
                  : bytes   ? MPI_BYTE
                            : MPI_INT,
                  in.data(), counts, places, root ? MPI_INT : MPI_DATATYPE_NULL, 1, kWorld);
    Ints all = root ? filled(uneven, {-1, 1, -1, -1}) : nothing();
    OK(MPI_Gatherv(root ? MPI_IN_PLACE : out.data(), root ? 99 : sent,
                   root ? MPI_DATATYPE_NULL : MPI_INT, all.data(), counts, places,
                   root ? MPI_INT : MPI_DATATYPE_NULL, 1, kWorld));
    CHECK(all == wanted);
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_scatterv_compares_the_root_with_receivers, 4) {
    start_checked();
    const bool root = rank() == 2;
    const Blocks two(2);
    const Ints out = filled(two, {0, 1, 2, 3});
    Ints in = nothing();
    const auto count = [](int odd, int other) { return rank() == odd ? other : 2; };
    IN_EVERY_FORM(
        (Refusal{"longer", MPI_ERR_COUNT, differ(2, "2 of MPI_INT", 3, "3 of MPI_INT"), &in}),
        Scatterv, Iscatterv, out.data(), two.n(), two.at(), MPI_INT, in.data(), count(3, 3),
        MPI_INT, 2, kWorld);
    IN_EVERY_FORM(
        (Refusal{"shorter", MPI_ERR_COUNT, differ(2, "2 of MPI_INT", 0, "1 of MPI_INT"), &in}),
        Scatterv, Iscatterv, out.data(), two.n(), two.at(), MPI_INT, in.data(), count(0, 1),
        MPI_INT, 2, kWorld);
    IN_EVERY_FORM((Refusal{"another type", MPI_ERR_TYPE,
                           differ(2, "2 of MPI_INT", 1, "2 of MPI_FLOAT"), &in}),
                  Scatterv, Iscatterv, out.data(), two.n(), two.at(), MPI_INT, in.data(), 2,
                  rank() == 1 ? MPI_FLOAT : MPI_INT, 2, kWorld);
    Ints wanted = nothing();
    std::fill_n(wanted.begin(), 2, rank());
    IN_EVERY_FORM((Written{"right", in, wanted}), Scatterv, Iscatterv, out.data(),
                  root ? two.n() : nullptr, root ? two.at() : nullptr,
                  root ? MPI_INT : MPI_DATATYPE_NULL, in.data(), rank() == 3 ? 1 : 2,
                  rank() == 3 ? MPI_2INT : MPI_INT, 2, kWorld);
    OK(MPI_Scatterv(out.data(), two.n(), two.at(), MPI_INT, root ? MPI_IN_PLACE : in.data(),
                    root ? 99 : 2, root ? MPI_DATATYPE_NULL : MPI_INT, 2, kWorld));
    CHECK(root || in == wanted);
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_allgatherv_compares_each_list_with_all_senders, 4) {
    start_checked();
    const Blocks uneven = Blocks(2).with(0, 1).with(2, 0);
    const Blocks longer = rank() == 3 ? uneven.with(1, 3) : uneven;
    const int sent = uneven.counts[static_cast<std::size_t>(rank())];
    const Ints out(8, rank());
    Ints in = nothing();
    IN_EVERY_FORM((Refusal{"a list of another length", MPI_ERR_COUNT,
                           differ(1, "2 of MPI_INT", 3, "3 of MPI_INT"), &in}),
                  Allgatherv, Iallgatherv, out.data(), sent, MPI_INT, in.data(), longer.n(),
                  longer.at(), MPI_INT, kWorld);
    IN_EVERY_FORM((Refusal{"a sender of another type", MPI_ERR_TYPE,
                           differ(3, "2 of MPI_FLOAT", 0, "2 of MPI_INT"), &in}),
                  Allgatherv, Iallgatherv, out.data(), sent, rank() == 3 ? MPI_FLOAT : MPI_INT,
                  in.data(), uneven.n(), uneven.at(), MPI_INT, kWorld);
    IN_EVERY_FORM(
        (Refusal{"in place", MPI_ERR_COUNT, differ(3, "4 of MPI_INT", 0, "2 of MPI_INT"), &in}),
        Allgatherv, Iallgatherv, MPI_IN_PLACE, 99, MPI_DATATYPE_NULL, in.data(),
        (rank() == 3 ? uneven.with(3, 4) : uneven).n(), uneven.at(), MPI_INT, kWorld);
    const Ints wanted = filled(uneven, {0, 1, 2, 3});
    IN_EVERY_FORM((Written{"right", in, wanted}), Allgatherv, Iallgatherv, out.data(),
                  rank() == 1 ? 8 : sent,
                  sent == 0     ? MPI_DATATYPE_NULL
                  : rank() == 1 ? MPI_PACKED
                                : MPI_INT,
                  in.data(), uneven.n(), uneven.at(), rank() == 0 ? MPI_INT32_T : MPI_INT, kWorld);
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_alltoallv_and_w_compare_each_pair, 4) {
    start_checked();
    const auto seen_from = [](int odd, const Blocks& its, const Blocks& others) {
        return rank() == odd ? its : others;
    };
    const Blocks one(1);
    const Blocks more = seen_from(1, one.with(3, 2), one),
                 floats = seen_from(2, one.with(0, 1, MPI_FLOAT), one);
    const Ints out = filled(one, {rank(), rank(), rank(), rank()});
    Ints in = nothing();
    const Refusal longer{"longer", MPI_ERR_COUNT, differ(1, "2 of MPI_INT", 3, "1 of MPI_INT"),
                         &in},
        shorter{"shorter", MPI_ERR_COUNT, differ(3, "1 of MPI_INT", 1, "2 of MPI_INT"), &in},
        typed{"another type", MPI_ERR_TYPE, differ(2, "1 of MPI_FLOAT", 0, "1 of MPI_INT"), &in},
        in_place{"in place", MPI_ERR_COUNT, differ(3, "1 of MPI_INT", 1, "2 of MPI_INT"), &in};
    IN_EVERY_FORM(longer, Alltoallv, Ialltoallv, out.data(), more.n(), more.at(), MPI_INT,
                  in.data(), one.n(), one.at(), MPI_INT, kWorld);
    IN_EVERY_FORM(shorter, Alltoallv, Ialltoallv, out.data(), one.n(), one.at(), MPI_INT, in.data(),
                  more.n(), more.at(), MPI_INT, kWorld);
    IN_EVERY_FORM(in_place, Alltoallv, Ialltoallv, MPI_IN_PLACE, nullptr, nullptr,
                  MPI_DATATYPE_NULL, in.data(), more.n(), more.at(), MPI_INT, kWorld);
    IN_EVERY_FORM(longer, Alltoallw, Ialltoallw, out.data(), more.n(), more.bytes(), more.t(),
                  in.data(), one.n(), one.bytes(), one.t(), kWorld);
    IN_EVERY_FORM(typed, Alltoallw, Ialltoallw, out.data(), floats.n(), floats.bytes(), floats.t(),
                  in.data(), one.n(), one.bytes(), one.t(), kWorld);
    IN_EVERY_FORM(in_place, Alltoallw, Ialltoallw, MPI_IN_PLACE, nullptr, nullptr, nullptr,
                  in.data(), more.n(), more.bytes(), more.t(), kWorld);
    const Ints wanted = filled(one, {0, 1, 2, 3});
    IN_EVERY_FORM((Written{"v", in, wanted}), Alltoallv, Ialltoallv, out.data(), one.n(), one.at(),
                  MPI_INT, in.data(), one.n(), one.at(), MPI_INT32_T, kWorld);
    // Rank 0 sends nothing to rank 3, by no type at either end; rank 1 sends bytes to rank 2.
    const Blocks sent = seen_from(0, one.with(3, 0, MPI_DATATYPE_NULL),
                                  seen_from(1, one.with(2, 4, MPI_BYTE), one)),
                 received = seen_from(3, one.with(0, 0, MPI_DATATYPE_NULL), one);
    IN_EVERY_FORM((Written{"w", in, filled(received, {0, 1, 2, 3})}), Alltoallw, Ialltoallw,
                  out.data(), sent.n(), sent.bytes(), sent.t(), in.data(), received.n(),
                  received.bytes(), received.t(), kWorld);
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_reduce_scatter_compares_the_shares, 4) {
    start_checked();
    const Ints ones(4, 1), odd = {2, 0, 1, 1}, out(4, 1);
    Ints in(4, -1);
    IN_EVERY_FORM((Refusal{"as long together", MPI_ERR_COUNT,
                           "rank 2 names 2 of MPI_INT as the share of rank 0, rank 0 names 1 of "
                           "MPI_INT",
                           &in}),
                  Reduce_scatter, Ireduce_scatter, out.data(), in.data(),
                  (rank() == 2 ? odd : ones).data(), MPI_INT, MPI_SUM, kWorld);
    const Ints more = {1, 1, 1, 2};
    IN_EVERY_FORM((Refusal{"longer together", MPI_ERR_COUNT,
                           "rank 1 has 5 of MPI_INT, rank 0 has 4 of MPI_INT", &in}),
                  Reduce_scatter, Ireduce_scatter, out.data(), in.data(),
                  (rank() == 1 ? more : ones).data(), MPI_INT, MPI_SUM, kWorld);
    Ints wanted(4, -1);
    std::fill_n(wanted.begin(), odd[static_cast<std::size_t>(rank())], size());
    IN_EVERY_FORM((Written{"right", in, wanted}), Reduce_scatter, Ireduce_scatter, out.data(),
                  in.data(), odd.data(), rank() == 3 ? MPI_INT32_T : MPI_INT, MPI_SUM, kWorld);
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

// Along a line of ranks; those at its ends have nobody on one side, and whatever they name there.
MPI_CASE_OWN_INIT(checked_neighbors_compare_along_edges, 4) {
    start_checked();
    MPI_Comm line;
    const int extent = kRanks, open = 0;
    OK(MPI_Cart_create(kWorld, 1, &extent, &open, 0, &line));
    const Ints out(8, rank());
    Ints in = nothing();
    const bool odd = rank() == 2;
    const Refusal longer{"longer", MPI_ERR_COUNT, differ(2, "2 of MPI_INT", 1, "1 of MPI_INT"),
                         &in},
        shorter{"shorter", MPI_ERR_COUNT, differ(3, "1 of MPI_INT", 2, "2 of MPI_INT"), &in},
        typed{"another type", MPI_ERR_TYPE, differ(2, "1 of MPI_FLOAT", 1, "1 of MPI_INT"), &in};
    const int sent = odd ? 2 : 1;
    const MPI_Datatype type = odd ? MPI_FLOAT : MPI_INT;
    const Blocks one(1, 2);
    const Blocks to_left = odd ? one.with(0, 2) : one, from_right = odd ? one.with(1, 2) : one,
                 float_to_left = odd ? one.with(0, 1, MPI_FLOAT) : one;
    const std::vector<MPI_Aint> places = one.aints();
    IN_EVERY_FORM(longer, Neighbor_allgather, Ineighbor_allgather, out.data(), sent, MPI_INT,
                  in.data(), 1, MPI_INT, line);
    IN_EVERY_FORM(typed, Neighbor_allgather, Ineighbor_allgather, out.data(), 1, type, in.data(), 1,
                  MPI_INT, line);
    IN_EVERY_FORM(shorter, Neighbor_allgatherv, Ineighbor_allgatherv, out.data(), 1, MPI_INT,
                  in.data(), from_right.n(), one.at(), MPI_INT, line);
    IN_EVERY_FORM(longer, Neighbor_alltoall, Ineighbor_alltoall, out.data(), sent, MPI_INT,
                  in.data(), 1, MPI_INT, line);
    IN_EVERY_FORM(longer, Neighbor_alltoallv, Ineighbor_alltoallv, out.data(), to_left.n(),
                  one.at(), MPI_INT, in.data(), one.n(), one.at(), MPI_INT, line);
    IN_EVERY_FORM(shorter, Neighbor_alltoallv, Ineighbor_alltoallv, out.data(), one.n(), one.at(),
                  MPI_INT, in.data(), from_right.n(), one.at(), MPI_INT, line);
    IN_EVERY_FORM(longer, Neighbor_alltoallw, Ineighbor_alltoallw, out.data(), to_left.n(),
                  places.data(), to_left.t(), in.data(), one.n(), places.data(), one.t(), line);
    IN_EVERY_FORM(typed, Neighbor_alltoallw, Ineighbor_alltoallw, out.data(), float_to_left.n(),
                  places.data(), float_to_left.t(), in.data(), one.n(), places.data(), one.t(),
                  line);
    // The ends' blocks for nobody differ from all others.
    const bool first = rank() == 0, last = rank() == kRanks - 1;
    const Blocks ends = first  ? one.with(0, 2, MPI_DOUBLE)
                        : last ? one.with(1, 3, MPI_DOUBLE)
                               : one;
    Ints wanted = nothing();
    if (!first) wanted[0] = rank() - 1;
    if (!last) wanted[8] = rank() + 1;
    IN_EVERY_FORM((Written{"allgatherv", in, wanted}), Neighbor_allgatherv, Ineighbor_allgatherv,
                  out.data(), 1, MPI_INT, in.data(), ends.n(), one.at(), MPI_INT, line);
    const Ints everywhere(16, rank());
    IN_EVERY_FORM((Written{"alltoallv", in, wanted}), Neighbor_alltoallv, Ineighbor_alltoallv,
                  everywhere.data(), ends.n(), one.at(), MPI_INT, in.data(), ends.n(), one.at(),
                  MPI_INT32_T, line);
    IN_EVERY_FORM((Written{"alltoallw", in, wanted}), Neighbor_alltoallw, Ineighbor_alltoallw,
                  everywhere.data(), ends.n(), places.data(), ends.t(), in.data(), ends.n(),
                  places.data(), ends.t(), line);
    OK(MPI_Comm_free(&line));
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

// Two edges between the same ranks, with blocks of their own.
MPI_CASE_OWN_INIT(checked_edges_of_a_graph_are_told_apart, 2) {
    start_checked();
    MPI_Comm graph;
    const int twice[] = {1 - rank(), 1 - rank()};
    OK(MPI_Dist_graph_create_adjacent(kWorld, 2, twice, MPI_UNWEIGHTED, 2, twice, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &graph));
    const Blocks sent = Blocks(1, 2).with(1, 3), turned = Blocks(3, 2).with(1, 1);
    const Ints out(16, rank());
    Ints in = nothing();
    IN_EVERY_FORM((Refusal{"the other way round", MPI_ERR_COUNT,
                           differ(1, "1 of MPI_INT", 0, "3 of MPI_INT"), &in}),
                  Neighbor_alltoallv, Ineighbor_alltoallv, out.data(), sent.n(), sent.at(), MPI_INT,
                  in.data(), (rank() == 0 ? turned : sent).n(), sent.at(), MPI_INT, graph);
    IN_EVERY_FORM((Written{"right", in, filled(sent, {1 - rank(), 1 - rank()})}),
                  Neighbor_alltoallv, Ineighbor_alltoallv, out.data(), sent.n(), sent.at(), MPI_INT,
                  in.data(), sent.n(), sent.at(), MPI_INT, graph);
    OK(MPI_Comm_free(&graph));
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_blocks_of_device_memory_are_compared, 2) {
    start_checked();
    constexpr int kMany = 5000;
    constexpr std::size_t kBytes = kMany * sizeof(int);
    Memory out(Kind::device, kBytes), in(Kind::device, 2 * kBytes);
    const int counts[] = {kMany, kMany}, fewer[] = {kMany, kMany - 1}, places[] = {0, kMany};
    out.fill(static_cast<unsigned>(rank()));
    in.fill(7);
    const auto refused = [&](int code) {
        expect(code, MPI_ERR_COUNT, {differ(1, "5000 of MPI_INT", 0, "4999 of MPI_INT").c_str()},
               "device memory");
        CHECK_EQ(in.differs(7, 2 * kBytes), -1);
    };
    IN_EVERY_FORM(refused, Allgatherv, Iallgatherv, out.data(), kMany, MPI_INT, in.data(),
                  rank() == 0 ? fewer : counts, places, MPI_INT, kWorld);
    OK(MPI_Allgatherv(out.data(), kMany, MPI_INT, in.data(), counts, places, MPI_INT, kWorld));
    CHECK_EQ(in.differs(0, kBytes), -1);
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Blocking collectives, many of them in a row: small ones go over mailboxes of the node (docs/design/mailboxes.md),
// whatever memory each rank brings, and whatever happens to communicators.
#include "gpu.hpp"
#include "test.hpp"

#include <algorithm>
#include <vector>

using namespace mpi_tests;

namespace {

// Number i of what a rank brings in a round.
int number(int of_rank, int round, int i) {
    return of_rank * 10'000 + round * 100 + i;
}

constexpr int kShort = 5, kLong = 20'000;

// One call of each operation, of `count` items a block, in memory of that kind on this rank.
void every_operation(Kind kind, int round, int count = kShort) {
    const int me = rank(), ranks = size(), root = round % ranks;
    const auto all = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(count);
    const auto part = static_cast<std::size_t>(count);
    Memory one(kind, part * sizeof(int)), many(kind, all * sizeof(int)),
        result(kind, all * sizeof(int));
    std::vector<int> host(all);
    const auto bring = [&] {
        for (std::size_t i = 0; i < all; ++i)
            host[i] = number(me, round, static_cast<int>(i));
        many.write(host.data(), all * sizeof(int));
        one.write(host.data(), part * sizeof(int));
    };
    const auto got = [&](const Memory& memory, std::size_t items) {
        memory.read(host.data(), items * sizeof(int));
    };
    const auto sum = [&](int i) {
        int of_all = 0;
        for (int each = 0; each < ranks; ++each)
            of_all += number(each, round, i);
        return of_all;
    };
    bring();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Allreduce(one.data(), result.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    got(result, part);
    for (int i = 0; i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], sum(i));
    OK(MPI_Reduce(one.data(), result.data(), count, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD));
    got(result, part);
    for (int i = 0; me == root && i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], number(ranks - 1, round, i));
    OK(MPI_Reduce_scatter_block(many.data(), result.data(), count, MPI_INT, MPI_SUM,
                                MPI_COMM_WORLD));
    got(result, part);
    for (int i = 0; i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], sum(me * count + i));
    OK(MPI_Gather(one.data(), count, MPI_INT, result.data(), count, MPI_INT, root, MPI_COMM_WORLD));
    got(result, all);
    for (int i = 0; me == root && i < static_cast<int>(all); ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], number(i / count, round, i % count));
    OK(MPI_Allgather(one.data(), count, MPI_INT, result.data(), count, MPI_INT, MPI_COMM_WORLD));
    got(result, all);
    for (int i = 0; i < static_cast<int>(all); ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], number(i / count, round, i % count));
    OK(MPI_Alltoall(many.data(), count, MPI_INT, result.data(), count, MPI_INT, MPI_COMM_WORLD));
    got(result, all);
    for (int i = 0; i < static_cast<int>(all); ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)],
                 number(i / count, round, me * count + i % count));
    OK(MPI_Scatter(many.data(), count, MPI_INT, result.data(), count, MPI_INT, root,
                   MPI_COMM_WORLD));
    got(result, part);
    for (int i = 0; i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], number(root, round, me * count + i));
    // Of the ranks up to this one, and of those before it.
    const auto sum_up_to = [&](int last, int i) {
        int of_these = 0;
        for (int each = 0; each <= last; ++each)
            of_these += number(each, round, i);
        return of_these;
    };
    OK(MPI_Scan(one.data(), result.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    got(result, part);
    for (int i = 0; i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], sum_up_to(me, i));
    OK(MPI_Exscan(one.data(), result.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    got(result, part);
    for (int i = 0; i < count; ++i)  // rank 0 keeps what was there
        CHECK_EQ(host[static_cast<std::size_t>(i)], sum_up_to(std::max(me - 1, 0), i));
    OK(MPI_Bcast(one.data(), count, MPI_INT, root, MPI_COMM_WORLD));
    got(one, part);
    for (int i = 0; i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], number(root, round, i));
    // In place.
    bring();
    OK(MPI_Allreduce(MPI_IN_PLACE, one.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    got(one, part);
    for (int i = 0; i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], sum(i));
    bring();
    OK(MPI_Scan(MPI_IN_PLACE, one.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    got(one, part);
    for (int i = 0; i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], sum_up_to(me, i));
    bring();
    OK(MPI_Exscan(MPI_IN_PLACE, one.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    got(one, part);
    for (int i = 0; me > 0 && i < count; ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)], sum_up_to(me - 1, i));
    OK(MPI_Gather(me == root ? MPI_IN_PLACE : many.data(), count, MPI_INT, many.data(), count,
                  MPI_INT, root, MPI_COMM_WORLD));
    got(many, all);
    for (int i = 0; me == root && i < static_cast<int>(all); ++i)
        CHECK_EQ(host[static_cast<std::size_t>(i)],
                 i / count == me ? number(me, round, i) : number(i / count, round, i % count));
}

// Rank i's part is of i items, so that rank 0 has none; between the blocks lies one item of nobody.
void every_v_operation(Kind kind, int round) {
    const int me = rank(), ranks = size();
    std::vector<int> counts(static_cast<std::size_t>(ranks)), places(counts.size());
    int all = 0;
    for (int each = 0; each < ranks; ++each) {
        counts[static_cast<std::size_t>(each)] = each;
        places[static_cast<std::size_t>(each)] = all + each;
        all += each;
    }
    const auto room = static_cast<std::size_t>(all + ranks);
    Memory mine(kind, room * sizeof(int)), result(kind, room * sizeof(int));
    std::vector<int> host(room);
    const auto bring = [&](Memory& memory, int at) {
        std::fill(host.begin(), host.end(), -7);
        for (int i = 0; at + i < static_cast<int>(room); ++i)
            host[static_cast<std::size_t>(at + i)] = number(me, round, i);
        memory.write(host.data(), room * sizeof(int));
    };
    const auto check_all = [&] {
        result.read(host.data(), room * sizeof(int));
        for (int each = 0; each < ranks; ++each)
            for (int i = 0; i < each; ++i)
                CHECK_EQ(host[static_cast<std::size_t>(places[static_cast<std::size_t>(each)] + i)],
                         number(each, round, i));
    };
    bring(mine, 0);
    OK(MPI_Allgatherv(mine.data(), me, MPI_INT, result.data(), counts.data(), places.data(),
                      MPI_INT, MPI_COMM_WORLD));
    check_all();
    bring(result, places[static_cast<std::size_t>(me)]);
    OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, result.data(), counts.data(), places.data(),
                      MPI_INT, MPI_COMM_WORLD));
    check_all();
    int first = 0;
    for (int each = 0; each < me; ++each)
        first += each;
    const auto check_share = [&](const Memory& memory) {
        memory.read(host.data(), room * sizeof(int));
        for (int i = 0; i < me; ++i) {
            int sum = 0;
            for (int each = 0; each < ranks; ++each)
                sum += number(each, round, first + i);
            CHECK_EQ(host[static_cast<std::size_t>(i)], sum);
        }
    };
    OK(MPI_Reduce_scatter(mine.data(), result.data(), counts.data(), MPI_INT, MPI_SUM,
                          MPI_COMM_WORLD));
    check_share(result);
    OK(MPI_Reduce_scatter(MPI_IN_PLACE, mine.data(), counts.data(), MPI_INT, MPI_SUM,
                          MPI_COMM_WORLD));
    check_share(mine);
}

}  // namespace

MPI_CASE(small_collectives_in_a_row, 4) {
    for (int round = 0; round < 20; ++round)
        every_operation(Kind::host, round);
}

// Rank 1 alone brings device memory for a while, then everybody, then nobody.
MPI_CASE(small_collectives_whose_memory_changes, 3) {
    use_device(rank() % gpu().count);
    for (int round = 0; round < 24; ++round) {
        const bool device = round / 6 == 1 ? rank() == 1 : round / 6 == 2;
        every_operation(device ? Kind::device : Kind::host, round);
    }
}

// These read host memory where it lies (docs/design/host-collectives.md).
MPI_CASE(long_collectives_in_a_row, 3) {
    for (int round = 0; round < 6; ++round)
        every_operation(Kind::host, round, kLong);
}

MPI_CASE(long_collectives_whose_memory_changes, 3) {
    use_device(rank() % gpu().count);
    for (int round = 0; round < 8; ++round)
        every_operation((round + rank()) % 3 == 0 ? Kind::device : Kind::host, round, kLong);
}

MPI_CASE(small_collectives_of_listed_blocks_in_a_row, 4) {
    for (int round = 0; round < 20; ++round)
        every_v_operation(Kind::host, round);
}

MPI_CASE(small_collectives_of_listed_blocks_whose_memory_changes, 3) {
    use_device(rank() % gpu().count);
    for (int round = 0; round < 24; ++round) {
        const bool device = round / 6 == 1 ? rank() == 1 : round / 6 == 2;
        every_v_operation(device ? Kind::device : Kind::host, round);
    }
}

MPI_CASE(more_communicators_than_mailboxes, 2) {
    for (int generation = 0; generation < 3; ++generation) {
        std::vector<MPI_Comm> comms(7);
        for (MPI_Comm& comm : comms)
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        for (int round = 0; round < 30; ++round)
            for (std::size_t i = 0; i < comms.size(); ++i) {
                int mine = round + static_cast<int>(i) + rank(), together = 0;
                OK(MPI_Allreduce(&mine, &together, 1, MPI_INT, MPI_SUM, comms[i]));
                CHECK_EQ(together, 2 * (round + static_cast<int>(i)) + 1);
            }
        for (MPI_Comm& comm : comms)
            OK(MPI_Comm_free(&comm));
    }
}

MPI_CASE(small_collectives_of_strided_types, 2) {
    MPI_Datatype every_second = MPI_DATATYPE_NULL;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int round = 0; round < 30; ++round) {
        std::vector<int> strided(6, -1), packed(6, -1);
        for (int i = 0; i < 3; ++i)
            strided[static_cast<std::size_t>(2 * i)] = number(rank(), round, i);
        OK(MPI_Allgather(strided.data(), 1, every_second, packed.data(), 3, MPI_INT,
                         MPI_COMM_WORLD));
        for (int i = 0; i < 6; ++i)
            CHECK_EQ(packed[static_cast<std::size_t>(i)], number(i / 3, round, i % 3));
        OK(MPI_Bcast(strided.data(), 1, every_second, 1, MPI_COMM_WORLD));
        for (int i = 0; i < 3; ++i) {
            CHECK_EQ(strided[static_cast<std::size_t>(2 * i)], number(1, round, i));
            CHECK_EQ(strided[static_cast<std::size_t>(2 * i + 1)], -1);
        }
    }
    OK(MPI_Type_free(&every_second));
}

// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_CHECK=1: collective calls whose arguments differ between ranks fail on all of them, with a
// sentence, and leave the communicator as it was; those that agree work.
#include "checked.hpp"
#include "test.hpp"

#include <cstdlib>
#include <vector>

using namespace mpi_tests;

namespace {

void expect_the_next_to_work() {
    int sum = 0;
    const int one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(sum, size());
}

}  // namespace

MPI_CASE_OWN_INIT(checked_collectives_that_differ_fail_everywhere, 3) {
    start_checked();
    int in[10] = {}, out[10] = {};
    const bool odd = rank() == 1;
    expect(MPI_Bcast(in, rank() == 0 ? 1 : 10, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
           {"rank 1 has 10 of MPI_INT, rank 0 has 1 of MPI_INT"}, "a longer broadcast");
    expect(MPI_Bcast(in, rank() == 0 ? 10 : 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
           {"rank 1 has 1"}, "a shorter broadcast");
    MPI_Request request;
    OK(MPI_Ibcast(in, rank() == 0 ? 1 : 10, MPI_INT, 0, MPI_COMM_WORLD, &request));
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_COUNT, {"of MPI_INT"}, "in background");
    OK(MPI_Bcast_init(in, odd ? 2 : 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_COUNT, {"of MPI_INT"}, "persistent");
    OK(MPI_Request_free(&request));
    expect(MPI_Bcast(in, 1, odd ? MPI_FLOAT : MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_TYPE,
           {"1 of MPI_FLOAT", "1 of MPI_INT"}, "another type");
    expect(MPI_Bcast(in, odd ? 8 : 1, odd ? MPI_BYTE : MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
           {"rank 1 has 8 of MPI_BYTE, rank 0 has 1 of MPI_INT"}, "other bytes");
    expect(MPI_Bcast(in, 1, MPI_INT, odd ? 1 : 0, MPI_COMM_WORLD), MPI_ERR_ROOT,
           {"rank 1 names root 1, rank 0 names root 0"}, "another root");
    expect(MPI_Allreduce(in, out, 1, MPI_INT, odd ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD), MPI_ERR_OP,
           {"rank 1 reduces by MPI_MAX, rank 0 by MPI_SUM"}, "another operation");
    expect(odd ? MPI_Barrier(MPI_COMM_WORLD) : MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_WORLD),
           MPI_ERR_OTHER, {"rank 1 calls MPI_Barrier where rank 0 calls MPI_Bcast"},
           "another function");
    expect(MPI_Gather(in, odd ? 2 : 1, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
           {"2 of MPI_INT"}, "a longer part");
    float floats[10] = {};
    expect(MPI_Allgather(in, 1, MPI_INT, floats, 1, odd ? MPI_FLOAT : MPI_INT, MPI_COMM_WORLD),
           MPI_ERR_TYPE, {"rank 1 has 1 of MPI_FLOAT, rank 0 has 1 of MPI_INT"},
           "what goes out is not what comes in");
    expect(MPI_Alltoall(in, 1, odd ? MPI_FLOAT : MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD),
           MPI_ERR_TYPE, {"1 of MPI_FLOAT", "1 of MPI_INT"}, "the other way round");
    expect(MPI_Scatter(in, 1, MPI_INT, out, rank() == 0 ? 2 : 1, MPI_INT, 0, MPI_COMM_WORLD),
           MPI_ERR_COUNT, {"rank 0 has 2 of MPI_INT, rank 0 has 1 of MPI_INT"}, "of the root");
    expect_the_next_to_work();
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_receives_that_end_inside_an_item_fail, 2) {
    start_checked();
    MPI_Datatype bytes, ints;
    const int lengths[] = {1, 1, 1}, places[] = {0, 2, 4};
    OK(MPI_Type_indexed(3, lengths, places, MPI_BYTE, &bytes));
    OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &ints));
    OK(MPI_Type_commit(&bytes));
    OK(MPI_Type_commit(&ints));
    char text[8] = "abcdefg";
    int got[8] = {};
    MPI_Request request;
    for (int round = 0; round < 4; ++round) {
        if (rank() == 1) {
            OK(MPI_Send(text, 1, bytes, 0, 0, MPI_COMM_WORLD));
            continue;
        }
        int code = MPI_SUCCESS;
        if (round == 0) {
            code = MPI_Recv(got, 1, ints, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (round == 1) {
            OK(MPI_Irecv(got, 3, MPI_INT, 1, 0, MPI_COMM_WORLD, &request));
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (round == 2) {
            OK(MPI_Irecv(got, 3, MPI_INT, 1, 0, MPI_COMM_WORLD, &request));
            MPI_Status status;
            CHECK_EQ(MPI_Waitall(1, &request, &status), MPI_ERR_IN_STATUS);
            code = status.MPI_ERROR;
            CHECK_EQ(code, MPI_ERR_TYPE);
            continue;
        } else {
            OK(MPI_Recv(got, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            continue;
        }
        expect(code, MPI_ERR_TYPE, {"3 bytes from rank 1", "inside a basic item"}, "bytes to ints");
    }
    expect_alive(MPI_COMM_WORLD);
    OK(MPI_Type_free(&bytes));
    OK(MPI_Type_free(&ints));
    OK(MPI_Finalize());
}

MPI_CASE_OWN_INIT(checked_collectives_that_agree_work, 3) {
    start_checked();
    const auto ranks = static_cast<std::size_t>(size());
    // The same items by other types and counts.
    MPI_Datatype three, pairs;
    OK(MPI_Type_contiguous(3, MPI_INT, &three));
    OK(MPI_Type_vector(3, 2, 2, MPI_INT32_T, &pairs));
    OK(MPI_Type_commit(&three));
    OK(MPI_Type_commit(&pairs));
    std::vector<int> data(6, rank());
    const MPI_Datatype types[] = {MPI_INT, three, pairs, MPI_BYTE, MPI_2INT};
    const int counts[] = {6, 2, 1, 24, 3};
    for (int shift = 0; shift < 5; ++shift) {
        const auto how = (rank() + shift) % 5;
        OK(MPI_Bcast(data.data(), counts[how], types[how], 0, MPI_COMM_WORLD));
    }
    CHECK(data == std::vector<int>(6, 0));
    const int mine = rank();
    std::vector<int> all(ranks), one(ranks, 1), places(ranks);
    for (std::size_t i = 0; i < ranks; ++i)
        places[i] = static_cast<int>(i);
    int got = -1;
    OK(MPI_Gather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, 1, MPI_COMM_WORLD));
    CHECK(rank() != 1 || all[2] == 2);
    OK(MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), 1, MPI_INT, MPI_COMM_WORLD));
    CHECK_EQ(all[2], 2);
    OK(MPI_Scatter(all.data(), 1, MPI_INT, &got, 1, MPI_INT, 2, MPI_COMM_WORLD));
    CHECK_EQ(got, rank());
    std::vector<int> turned(ranks);
    OK(MPI_Alltoall(all.data(), 1, MPI_INT, turned.data(), 1, MPI_INT, MPI_COMM_WORLD));
    CHECK(turned == std::vector<int>(ranks, rank()));
    OK(MPI_Allgatherv(&mine, 1, MPI_INT, all.data(), one.data(), places.data(), MPI_INT,
                      MPI_COMM_WORLD));
    CHECK_EQ(all[1], 1);
    OK(MPI_Reduce_scatter(all.data(), &got, one.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(got, rank() * size());
    OK(MPI_Scan(&mine, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(got, rank() * (rank() + 1) / 2);
    MPI_Request request;
    OK(MPI_Allreduce_init(&mine, &got, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &request));
    for (int round = 0; round < 3; ++round) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_EQ(got, size() - 1);
    }
    OK(MPI_Request_free(&request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&three));
    OK(MPI_Type_free(&pairs));
    OK(MPI_Finalize());
}

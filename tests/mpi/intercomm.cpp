// SPDX-License-Identifier: BSD-3-Clause
//
// Inter-communicators on 2 to 8 ranks, of groups of different sizes: what they say of themselves,
// messages between the groups, and every collective in every form.
#include "intercomm.hpp"

#include <algorithm>

using namespace mpi_tests;

namespace {

void made_of_two_groups() {
    for (int border = 1; border < size(); ++border) {
        MPI_Comm inter = between(border);
        const int others = size() - border;
        int flag = 0;
        OK(MPI_Comm_test_inter(inter, &flag));
        CHECK_EQ(flag, 1);
        CHECK_EQ(size_of(inter), is_low(border) ? border : others);
        CHECK_EQ(remote_size(inter), is_low(border) ? others : border);
        CHECK_EQ(rank_in(inter), is_low(border) ? rank() : size() - 1 - rank());
        std::vector<int> low(static_cast<std::size_t>(border)),
            high(static_cast<std::size_t>(others));
        std::iota(low.begin(), low.end(), 0);
        std::iota(high.rbegin(), high.rend(), border);
        CHECK(mine_in(inter) == (is_low(border) ? low : high));
        CHECK(theirs_in(inter) == (is_low(border) ? high : low));
        expect_it_carries(inter);
        OK(MPI_Comm_free(&inter));
        CHECK(inter == MPI_COMM_NULL);
    }
}

void collectives_in_every_form() {
    for (int border = 1; border < size(); ++border) {
        MPI_Comm inter = between(border);
        for (Form form : {Form::blocking, Form::nonblocking, Form::persistent})
            every_collective(inter_meeting(inter), form);
        OK(MPI_Comm_free(&inter));
    }
}

}  // namespace

MPI_CASE(intercommunicators_of_2, 2) {
    made_of_two_groups();
}
MPI_CASE(intercommunicators_of_3, 3) {
    made_of_two_groups();
}
MPI_CASE(intercommunicators_of_7, 7) {
    made_of_two_groups();
}
MPI_CASE(intercommunicators_of_8, 8) {
    made_of_two_groups();
}
MPI_CASE(collectives_between_groups_of_2, 2) {
    collectives_in_every_form();
}
MPI_CASE(collectives_between_groups_of_3, 3) {
    collectives_in_every_form();
}
MPI_CASE(collectives_between_groups_of_5, 5) {
    collectives_in_every_form();
}

MPI_CASE(messages_between_groups_name_remote_ranks, 5) {
    MPI_Comm inter = between(2);
    const int others = remote_size(inter);
    // Everybody to everybody of the other group, received from any source.
    int word[2] = {rank(), rank_in(inter)};
    std::vector<MPI_Request> sends(static_cast<std::size_t>(others));
    for (int to = 0; to < others; ++to)
        OK(MPI_Isend(word, 2, MPI_INT, to, 100 + to, inter, &sends[static_cast<std::size_t>(to)]));
    std::vector<int> heard;
    for (int i = 0; i < others; ++i) {
        MPI_Status status;
        int got[2] = {-1, -1};
        OK(MPI_Probe(MPI_ANY_SOURCE, 100 + rank_in(inter), inter, &status));
        OK(MPI_Recv(got, 2, MPI_INT, MPI_ANY_SOURCE, 100 + rank_in(inter), inter, &status));
        CHECK_EQ(status.MPI_SOURCE, got[1]);
        CHECK_EQ(status.MPI_TAG, 100 + rank_in(inter));
        heard.push_back(got[0]);
    }
    OK(MPI_Waitall(others, sends.data(), MPI_STATUSES_IGNORE));
    std::vector<int> expected = theirs_in(inter);
    std::sort(heard.begin(), heard.end());
    std::sort(expected.begin(), expected.end());
    CHECK(heard == expected);

    // Rank 0 of both: exchanged, by a matched probe, synchronous, persistent.
    if (rank_in(inter) == 0) {
        int other = -1;
        OK(MPI_Sendrecv(&word[0], 1, MPI_INT, 0, 7, &other, 1, MPI_INT, 0, 7, inter,
                        MPI_STATUS_IGNORE));
        CHECK_EQ(other, is_low(2) ? 4 : 0);
        MPI_Request request;
        OK(MPI_Issend(&word[0], 1, MPI_INT, 0, 8, inter, &request));
        MPI_Message message;
        MPI_Status status;
        OK(MPI_Mprobe(0, 8, inter, &message, &status));
        CHECK_EQ(status.MPI_SOURCE, 0);
        other = -1;
        OK(MPI_Mrecv(&other, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        CHECK_EQ(other, is_low(2) ? 4 : 0);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPI_Request both[2];
        OK(MPI_Send_init(&word[0], 1, MPI_INT, 0, 9, inter, &both[0]));
        OK(MPI_Recv_init(&other, 1, MPI_INT, 0, 9, inter, &both[1]));
        for (int round = 0; round < 3; ++round) {
            other = -1;
            OK(MPI_Startall(2, both));
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
            CHECK_EQ(other, is_low(2) ? 4 : 0);
        }
        OK(MPI_Request_free(&both[0]));
        OK(MPI_Request_free(&both[1]));
    }
    OK(MPI_Comm_free(&inter));
}

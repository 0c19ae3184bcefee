// SPDX-License-Identifier: BSD-3-Clause
//
// What is made of an inter-communicator: duplicates, parts, one communicator of both groups; and
// inter-communicators of groups of a session.
#include "intercomm.hpp"
#include "refused.hpp"

#include <cstring>

using namespace mpi_tests;

namespace {

int copies = 0, deletes = 0;
int copy_number(MPI_Comm, int, void*, void* value, void* copied, int* flag) {
    ++copies;
    *static_cast<void**>(copied) = static_cast<char*>(value) + 1;
    *flag = 1;
    return MPI_SUCCESS;
}
int delete_number(MPI_Comm, int, void*, void*) {
    ++deletes;
    return MPI_SUCCESS;
}

}  // namespace

MPI_CASE(intercommunicators_are_duplicated_with_attributes, 5) {
    MPI_Comm inter = between(2), dup, later, informed;
    int key = MPI_KEYVAL_INVALID;
    char place = 0;
    OK(MPI_Comm_create_keyval(copy_number, delete_number, &key, nullptr));
    OK(MPI_Comm_set_attr(inter, key, &place));
    OK(MPI_Comm_dup(inter, &dup));
    MPI_Request request;
    OK(MPI_Comm_idup(inter, &later, &request));
    expect_it_carries(dup);  // while the other one is made
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_dup_with_info(inter, MPI_INFO_NULL, &informed));
    CHECK_EQ(copies, 3);
    for (MPI_Comm* each : {&dup, &later, &informed}) {
        void* value = nullptr;
        int flag = 0;
        OK(MPI_Comm_get_attr(*each, key, &value, &flag));
        CHECK(flag != 0 && value == &place + 1);
        CHECK_EQ(compare(*each, inter), MPI_CONGRUENT);
        expect_it_carries(*each);
    }
    CHECK_EQ(compare(inter, inter), MPI_IDENT);
    CHECK_EQ(compare(inter, MPI_COMM_WORLD), MPI_UNEQUAL);
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    OK(MPI_Comm_set_name(dup, "the bridge"));
    OK(MPI_Comm_get_name(dup, name, &length));
    CHECK(std::strcmp(name, "the bridge") == 0);
    // A message of one never reaches the other.
    int word = rank(), heard = -1;
    if (rank_in(inter) == 0) {
        MPI_Request sends[2];
        int first = 1, second = 2;
        OK(MPI_Isend(&first, 1, MPI_INT, 0, 0, inter, &sends[0]));
        OK(MPI_Isend(&second, 1, MPI_INT, 0, 0, dup, &sends[1]));
        OK(MPI_Recv(&heard, 1, MPI_INT, 0, 0, dup, MPI_STATUS_IGNORE));
        CHECK_EQ(heard, 2);
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
        CHECK_EQ(word, 1);
        OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    }
    for (MPI_Comm* each : {&dup, &later, &informed, &inter})
        OK(MPI_Comm_free(each));
    CHECK_EQ(deletes, 4);
    OK(MPI_Comm_free_keyval(&key));
}

MPI_CASE(intercommunicators_are_split_and_cut_down, 7) {
    const int border = 3;
    MPI_Comm inter = between(border), part, none, reversed, created, cut;
    // Odd and even world ranks meet their like of the other group.
    OK(MPI_Comm_split(inter, rank() % 2, rank(), &part));
    std::vector<int> mine, theirs;
    for (int other = 0; other < size(); ++other)
        if (other % 2 == rank() % 2)
            (is_low(border) == (other < border) ? mine : theirs).push_back(other);
    CHECK(part != MPI_COMM_NULL);
    CHECK(mine_in(part) == mine);
    CHECK(theirs_in(part) == theirs);
    expect_it_carries(part);
    // A color that only one group has makes nothing, and neither has who has none.
    const int color = rank() == 0 || rank() == 6 ? MPI_UNDEFINED : is_low(border) ? 1 : 2;
    OK(MPI_Comm_split(inter, color, 0, &none));
    CHECK(none == MPI_COMM_NULL);
    // By key, backwards.
    OK(MPI_Comm_split(inter, 9, -rank_in(inter), &reversed));
    CHECK_EQ(rank_in(reversed), size_of(inter) - 1 - rank_in(inter));
    CHECK_EQ(compare(inter, reversed), MPI_SIMILAR);
    expect_it_carries(reversed);

    // All but rank 0 of each group; then nobody of the second.
    MPI_Group group, most;
    OK(MPI_Comm_group(inter, &group));
    const int first = 0;
    OK(MPI_Group_excl(group, 1, &first, &most));
    OK(MPI_Comm_create(inter, most, &created));
    CHECK((created != MPI_COMM_NULL) == (rank_in(inter) != 0));
    if (created != MPI_COMM_NULL) {
        CHECK_EQ(size_of(created), size_of(inter) - 1);
        CHECK_EQ(remote_size(created), remote_size(inter) - 1);
        CHECK_EQ(compare(inter, created), MPI_UNEQUAL);
        expect_it_carries(created);
        OK(MPI_Comm_free(&created));
    }
    OK(MPI_Comm_create(inter, is_low(border) ? group : MPI_GROUP_EMPTY, &cut));
    CHECK(cut == MPI_COMM_NULL);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&most));
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&reversed));
    expect_it_carries(inter);
    OK(MPI_Comm_free(&inter));
}

MPI_CASE(intercommunicators_merge_in_the_wanted_order, 5) {
    const int border = 2;
    MPI_Comm inter = between(border);
    for (int low_is_high : {0, 1}) {
        for (int high_is_high : {0, 1}) {
            MPI_Comm merged;
            OK(MPI_Intercomm_merge(inter, is_low(border) ? low_is_high : high_is_high, &merged));
            int flag = -1;
            OK(MPI_Comm_test_inter(merged, &flag));
            CHECK_EQ(flag, 0);
            std::vector<int> expected = {0, 1, 4, 3, 2};
            if (low_is_high && !high_is_high) expected = {4, 3, 2, 0, 1};
            const std::vector<int> found = mine_in(merged);
            // Alike, the order of the groups is open.
            if (low_is_high != high_is_high)
                CHECK(found == expected);
            else
                CHECK(found == expected || found == std::vector<int>({4, 3, 2, 0, 1}));
            CHECK_EQ(found[static_cast<std::size_t>(rank_in(merged))], rank());
            int world = rank(), total = 0;
            OK(MPI_Allreduce(&world, &total, 1, MPI_INT, MPI_SUM, merged));
            CHECK_EQ(total, 10);
            OK(MPI_Comm_free(&merged));
        }
    }
    OK(MPI_Comm_free(&inter));
}

// A chain: the leaders reach each other by an inter-communicator.
MPI_CASE(an_intercommunicator_leads_to_the_next, 4) {
    MPI_Comm inter = between(1), alone, chained;
    // Process 0, and process 3 who is rank 0 of the others.
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank() == 0 || rank() == 3 ? rank() : MPI_UNDEFINED, 0,
                      &alone));
    if (alone != MPI_COMM_NULL) {
        OK(MPI_Intercomm_create(alone, 0, inter, 0, 5, &chained));
        CHECK(theirs_in(chained) == std::vector<int>({rank() == 0 ? 3 : 0}));
        expect_it_carries(chained);
        OK(MPI_Comm_free(&chained));
        OK(MPI_Comm_free(&alone));
    }
    OK(MPI_Comm_free(&inter));
}

// Without MPI_Init.
MPI_CASE_OWN_INIT(groups_of_sessions_meet, 5) {
    MPI_Session session;
    MPI_Group world, mine, theirs;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    int me = -1;
    OK(MPI_Group_rank(world, &me));
    int low[1][3] = {{0, 1, 1}}, high[1][3] = {{2, 4, 1}};
    OK(MPI_Group_range_incl(world, 1, me < 2 ? low : high, &mine));
    OK(MPI_Group_range_incl(world, 1, me < 2 ? high : low, &theirs));
    MPI_Comm inter, other;
    // Only the leaders name the other group.
    const bool leads = me == 1 || me == 2;
    OK(MPI_Intercomm_create_from_groups(mine, me < 2 ? 1 : 0, leads ? theirs : MPI_GROUP_NULL,
                                        leads ? (me < 2 ? 0 : 1) : -1, "gantry.test", MPI_INFO_NULL,
                                        MPI_ERRORS_RETURN, &inter));
    int total = -1;
    OK(MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, inter));
    CHECK_EQ(total, me < 2 ? 9 : 1);
    CHECK_EQ(remote_size(inter), me < 2 ? 3 : 2);
    MPI_Comm merged;
    OK(MPI_Intercomm_merge(inter, me < 2, &merged));
    CHECK_EQ(rank_in(merged), me < 2 ? 3 + me : me - 2);
    OK(MPI_Barrier(merged));
    OK(MPI_Comm_free(&merged));
    // Errors reach the given handler, and who asks the leader in vain.
    const int code = MPI_Intercomm_create_from_groups(mine, 0, mine, 0, "gantry.test",
                                                      MPI_INFO_NULL, MPI_ERRORS_RETURN, &other);
    if (me == 0 || me == 2)
        expect(code, MPI_ERR_COMM, {"both groups"}, "a group that meets itself");
    else
        expect(code, MPI_ERR_COMM, {"leader"}, "a leader that failed");
    CHECK(other == MPI_COMM_NULL);
    expect(MPI_Intercomm_create_from_groups(theirs, 0, mine, 0, "gantry.test", MPI_INFO_NULL,
                                            MPI_ERRORS_RETURN, &other),
           MPI_ERR_GROUP, {"local_group"}, "a group that I am not in");
    OK(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, theirs, 0, "gantry.test", MPI_INFO_NULL,
                                        MPI_ERRORS_RETURN, &other));
    CHECK(other == MPI_COMM_NULL);
    OK(MPI_Comm_free(&inter));
    for (MPI_Group* group : {&world, &mine, &theirs})
        OK(MPI_Group_free(group));
    OK(MPI_Session_finalize(&session));
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators and groups on 1 to 8 ranks: how they are made, that messages of one never reach
// another, what attributes do on a duplicate, and that contexts come back when they are freed.
#include "communicators.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace mpi_tests;

namespace {

using mpi_tests::compare;
int compare(MPI_Group a, MPI_Group b) {
    int found = -1;
    OK(MPI_Group_compare(a, b, &found));
    return found;
}
std::vector<int> members(MPI_Comm comm) {
    MPI_Group group;
    OK(MPI_Comm_group(comm, &group));
    std::vector<int> found = world_ranks(group);
    OK(MPI_Group_free(&group));
    return found;
}
// Everybody's world rank, around the communicator and summed up.
void expect_it_carries(MPI_Comm comm) {
    const std::vector<int> who = members(comm);
    const int mine = rank_in(comm), count = size_of(comm),
              expected = std::accumulate(who.begin(), who.end(), 0);
    int sum = -1, world = rank(), left = -1;
    OK(MPI_Allreduce(&world, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, expected);
    OK(MPI_Sendrecv(&world, 1, MPI_INT, (mine + 1) % count, 0, &left, 1, MPI_INT,
                    (mine + count - 1) % count, 0, comm, MPI_STATUS_IGNORE));
    CHECK_EQ(left, who[static_cast<std::size_t>((mine + count - 1) % count)]);
    OK(MPI_Barrier(comm));
}

void made_in_every_way() {
    MPI_Comm dup, halves, reversed, none, typed, created, grouped;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    CHECK_EQ(compare(dup, MPI_COMM_WORLD), MPI_CONGRUENT);
    CHECK_EQ(compare(dup, dup), MPI_IDENT);
    expect_it_carries(dup);

    OK(MPI_Comm_split(dup, rank() % 2, 0, &halves));
    CHECK_EQ(size_of(halves), (size() + 1 - rank() % 2) / 2);
    CHECK_EQ(rank_in(halves), rank() / 2);
    expect_it_carries(halves);
    OK(MPI_Comm_split(dup, 5, -rank(), &reversed));
    CHECK_EQ(rank_in(reversed), size() - 1 - rank());
    CHECK_EQ(compare(reversed, dup), size() == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
    expect_it_carries(reversed);
    OK(MPI_Comm_split(dup, rank() == 0 ? 1 : MPI_UNDEFINED, 0, &none));
    CHECK((none == MPI_COMM_NULL) == (rank() != 0));
    if (none != MPI_COMM_NULL) expect_it_carries(none);
    if (none != MPI_COMM_NULL) OK(MPI_Comm_free(&none));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &typed));
    CHECK_EQ(size_of(typed), size());  // one machine
    expect_it_carries(typed);

    // All but the last, twice: by everybody, and by the members alone.
    MPI_Group world, most;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    const int last = size() - 1;
    OK(MPI_Group_excl(world, size() > 1 ? 1 : 0, &last, &most));
    OK(MPI_Comm_create(MPI_COMM_WORLD, most, &created));
    const bool member = size() == 1 || rank() != last;
    CHECK((created != MPI_COMM_NULL) == member);
    if (member) {
        expect_it_carries(created);
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, most, 17, &grouped));
        CHECK_EQ(compare(created, grouped), MPI_CONGRUENT);
        expect_it_carries(grouped);
        OK(MPI_Comm_free(&grouped));
        OK(MPI_Comm_free(&created));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&most));
    // Freed in an order that differs between ranks: freeing is not ordered among communicators.
    MPI_Comm all[] = {dup, halves, reversed, typed};
    if (rank() % 2) std::reverse(std::begin(all), std::end(all));
    for (MPI_Comm& each : all)
        OK(MPI_Comm_free(&each));
    expect_it_carries(MPI_COMM_WORLD);
    expect_it_carries(MPI_COMM_SELF);
}

}  // namespace

MPI_CASE(communicators_of_1, 1) {
    made_in_every_way();
}
MPI_CASE(communicators_of_2, 2) {
    made_in_every_way();
}
MPI_CASE(communicators_of_3, 3) {
    made_in_every_way();
}
MPI_CASE(communicators_of_4, 4) {
    made_in_every_way();
}
MPI_CASE(communicators_of_5, 5) {
    made_in_every_way();
}
MPI_CASE(communicators_of_7, 7) {
    made_in_every_way();
}
MPI_CASE(communicators_of_8, 8) {
    made_in_every_way();
}

MPI_CASE(groups_are_sets_with_an_order, 5) {
    MPI_Group world, odd, low, joined, both, rest, again, ranges;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    const int some[] = {3, 1};
    OK(MPI_Group_incl(world, 2, some, &odd));
    CHECK(world_ranks(odd) == std::vector<int>({3, 1}));
    int mine = -1;
    OK(MPI_Group_rank(odd, &mine));
    CHECK_EQ(mine, rank() == 3 ? 0 : rank() == 1 ? 1 : MPI_UNDEFINED);
    int range[][3] = {{0, 2, 1}};
    OK(MPI_Group_range_incl(world, 1, range, &low));
    OK(MPI_Group_union(odd, low, &joined));
    CHECK(world_ranks(joined) == std::vector<int>({3, 1, 0, 2}));
    OK(MPI_Group_intersection(odd, low, &both));
    CHECK(world_ranks(both) == std::vector<int>({1}));
    OK(MPI_Group_difference(world, odd, &rest));
    CHECK(world_ranks(rest) == std::vector<int>({0, 2, 4}));
    int backwards[][3] = {{4, 0, -2}};
    OK(MPI_Group_range_incl(world, 1, backwards, &ranges));
    CHECK(world_ranks(ranges) == std::vector<int>({4, 2, 0}));
    CHECK_EQ(compare(ranges, rest), MPI_SIMILAR);
    CHECK_EQ(compare(odd, rest), MPI_UNEQUAL);
    OK(MPI_Group_incl(world, 2, some, &again));
    CHECK_EQ(compare(odd, again), MPI_IDENT);
    MPI_Group empty;
    OK(MPI_Group_difference(odd, odd, &empty));
    CHECK_EQ(compare(empty, MPI_GROUP_EMPTY), MPI_IDENT);
    const int asked[] = {0, MPI_PROC_NULL, 1};
    int answers[3];
    OK(MPI_Group_translate_ranks(odd, 3, asked, low, answers));
    CHECK_EQ(answers[0], MPI_UNDEFINED);
    CHECK_EQ(answers[1], MPI_PROC_NULL);
    CHECK_EQ(answers[2], 1);
    for (MPI_Group* each : {&world, &odd, &low, &joined, &both, &rest, &again, &ranges, &empty})
        OK(MPI_Group_free(each));
}

MPI_CASE(messages_of_one_communicator_never_reach_another, 3) {
    constexpr int kComms = 6;
    MPI_Comm comms[kComms];
    for (MPI_Comm& each : comms)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &each));
    const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
    for (int count : {1, 50000}) {
        std::vector<std::vector<int>> out, in;
        std::vector<MPI_Request> requests;
        for (int i = 0; i < kComms; ++i) {
            out.emplace_back(static_cast<std::size_t>(count), 10 * rank() + i);
            in.emplace_back(static_cast<std::size_t>(count), -1);
        }
        // Sent in one order, received in the other, with wildcards everywhere: only the
        // communicator tells them apart.
        for (int i = 0; i < kComms; ++i) {
            requests.emplace_back();
            OK(MPI_Isend(out[static_cast<std::size_t>(i)].data(), count, MPI_INT, right, 4,
                         comms[i], &requests.back()));
        }
        for (int i = kComms - 1; i >= 0; --i) {
            requests.emplace_back();
            OK(MPI_Irecv(in[static_cast<std::size_t>(i)].data(), count, MPI_INT, MPI_ANY_SOURCE,
                         MPI_ANY_TAG, comms[i], &requests.back()));
            OK(MPI_Barrier(comms[i]));  // a collective on it disturbs nothing
        }
        OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
        for (int i = 0; i < kComms; ++i)
            CHECK(in[static_cast<std::size_t>(i)] ==
                  std::vector<int>(static_cast<std::size_t>(count), 10 * left + i));
    }
    for (MPI_Comm& each : comms)
        OK(MPI_Comm_free(&each));
}

MPI_CASE(duplicates_do_not_inherit_hints, 2) {
    MPI_Info hints;
    OK(MPI_Info_create(&hints));
    OK(MPI_Info_set(hints, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Info_set(hints, "my_key", "x"));
    const auto has = [](MPI_Comm comm, const char* key) {
        MPI_Info info;
        char value[16];
        int length = sizeof value, flag = -1;
        OK(MPI_Comm_get_info(comm, &info));
        OK(MPI_Info_get_string(info, key, &length, value, &flag));
        OK(MPI_Info_free(&info));
        return flag == 1;
    };
    MPI_Comm comm, made[3];
    MPI_Request request;
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, hints, &comm));
    OK(MPI_Comm_dup(comm, &made[0]));
    OK(MPI_Comm_idup(comm, &made[1], &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_split(comm, 0, 0, &made[2]));
    for (const char* key : {"mpi_assert_no_any_tag", "my_key"}) {
        about(key);
        CHECK(has(comm, key));
        for (MPI_Comm each : made)
            CHECK(!has(each, key));
    }
    about("");
    for (MPI_Comm& each : made)
        OK(MPI_Comm_free(&each));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&hints));
}

MPI_CASE(duplicating_in_the_background, 4) {
    constexpr int kComms = 5;
    MPI_Comm made[kComms];
    MPI_Request requests[kComms];
    for (int i = 0; i < kComms; ++i)
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &made[i], &requests[i]));
    // Meanwhile other collectives and messages go over the same communicator.
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(sum, size());
    MPI_Comm blocking;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &blocking));
    OK(MPI_Waitall(kComms, requests, MPI_STATUSES_IGNORE));
    for (MPI_Comm& each : made) {
        CHECK_EQ(compare(each, blocking), MPI_CONGRUENT);
        expect_it_carries(each);
        OK(MPI_Comm_free(&each));
    }
    OK(MPI_Comm_free(&blocking));
}

MPI_CASE(contexts_come_back_when_communicators_are_freed, 3) {
    for (int i = 0; i < 10000; ++i) {
        MPI_Comm comm;
        const int code = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (code != MPI_SUCCESS) {
            CHECK_EQ(i, 10000);  // says how far it got
            break;
        }
        OK(MPI_Comm_free(&comm));
    }
    expect_it_carries(MPI_COMM_WORLD);
}

MPI_CASE(many_communicators_live_at_once, 2) {
    std::vector<MPI_Comm> comms(500);
    for (MPI_Comm& each : comms)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &each));
    expect_it_carries(comms.front());
    expect_it_carries(comms.back());
    for (MPI_Comm& each : comms)
        OK(MPI_Comm_free(&each));
}

MPI_CASE(groups_of_few_are_made_into_communicators_one_after_the_other, 4) {
    // Members alone take part, under one tag, in groups that overlap: an agreement must not hear of
    // the next one, where ranks are others.
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    std::uint32_t dice = 20261120;  // the same on every rank
    for (int round = 0; round < 300; ++round) {
        std::vector<int> chosen;
        for (int i = 0; i < size(); ++i) {
            dice = dice * 1664525u + 1013904223u;
            if (dice >> 31) chosen.push_back(i);
        }
        if (std::find(chosen.begin(), chosen.end(), rank()) == chosen.end()) continue;
        MPI_Group group;
        MPI_Comm comm;
        OK(MPI_Group_incl(world, static_cast<int>(chosen.size()), chosen.data(), &group));
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &comm));
        CHECK(members(comm) == chosen);
        OK(MPI_Barrier(comm));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Group_free(&group));
    }
    OK(MPI_Group_free(&world));
}

// --- attributes ----------------------------------------------------------------------------------

static int copies = 0, deletions = 0;

static int copy_and_count(MPI_Comm, int, void* extra, void* value, void* copied, int* flag) {
    ++copies;
    *static_cast<void**>(copied) = static_cast<char*>(value) + *static_cast<int*>(extra);
    *flag = 1;
    return MPI_SUCCESS;
}
static int delete_and_count(MPI_Comm, int, void*, void*) {
    ++deletions;
    return MPI_SUCCESS;
}
static int refuse(MPI_Comm, int, void*, void*, void*, int*) {
    return MPI_ERR_OTHER;
}

MPI_CASE(attributes_follow_duplicates_by_their_callbacks, 2) {
    int step = 3, counted = 0, dropped = 0, plain = 0, flag = 0;
    OK(MPI_Comm_create_keyval(copy_and_count, delete_and_count, &counted, &step));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &dropped, nullptr));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &plain, nullptr));
    MPI_Comm comm, copy;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    char text[] = "attribute";
    OK(MPI_Comm_set_attr(comm, counted, text));
    OK(MPI_Comm_set_attr(comm, dropped, text));
    OK(MPI_Comm_set_attr(comm, plain, text));
    OK(MPI_Comm_dup(comm, &copy));
    void* value = nullptr;
    OK(MPI_Comm_get_attr(copy, counted, &value, &flag));
    CHECK(flag == 1 && value == text + 3);
    OK(MPI_Comm_get_attr(copy, dropped, &value, &flag));
    CHECK_EQ(flag, 0);
    OK(MPI_Comm_get_attr(copy, plain, &value, &flag));
    CHECK(flag == 1 && value == text);
    CHECK_EQ(copies, 1);
    OK(MPI_Comm_delete_attr(comm, counted));
    CHECK_EQ(deletions, 1);
    OK(MPI_Comm_free(&copy));
    CHECK_EQ(deletions, 2);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free_keyval(&counted));
    OK(MPI_Comm_free_keyval(&dropped));
    OK(MPI_Comm_free_keyval(&plain));
    CHECK_EQ(plain, MPI_KEYVAL_INVALID);
}

MPI_CASE(a_copy_callback_that_fails_fails_the_duplicate, 2) {
    int key = 0;
    MPI_Comm comm, copy = MPI_COMM_NULL;
    OK(MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &key, nullptr));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_attr(comm, key, nullptr));
    CHECK_EQ(error_class(MPI_Comm_dup(comm, &copy)), MPI_ERR_OTHER);
    OK(MPI_Comm_delete_attr(comm, key));
    OK(MPI_Comm_dup(comm, &copy));
    expect_it_carries(copy);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free_keyval(&key));
}

MPI_CASE(predefined_attributes_and_names, 2) {
    void* value = nullptr;
    int flag = 0, length = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag == 1 && *static_cast<int*>(value) >= 32767);
    // The largest tag works.
    const int largest = *static_cast<int*>(value);
    int out = rank(), in = -1;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank(), largest, &in, 1, MPI_INT, 1 - rank(), largest,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(in, 1 - rank());
    for (int key : {MPI_WTIME_IS_GLOBAL, MPI_HOST, MPI_IO, MPI_LASTUSEDCODE}) {
        about("key " + std::to_string(key));
        OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
        CHECK(flag == 1 && value != nullptr);
    }
    about("");
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(std::string(name) == "MPI_COMM_WORLD");
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK_EQ(length, 0);
    OK(MPI_Comm_set_name(comm, "halo"));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK(std::string(name) == "halo" && length == 4);
    OK(MPI_Comm_free(&comm));
}

MPI_CASE(the_kinds_of_memory_are_told_by_nobody_but_mpi, 1) {
    constexpr const char* kKey = "mpi_memory_alloc_kinds";
    const auto told = [](MPI_Info info) {
        char text[256] = "";
        int length = sizeof text, flag = 0;
        OK(MPI_Info_get_string(info, kKey, &length, text, &flag));
        OK(MPI_Info_free(&info));
        return std::string(text);
    };
    const auto told_by = [&](MPI_Comm comm) {
        MPI_Info info;
        OK(MPI_Comm_get_info(comm, &info));
        return told(info);
    };
    MPI_Info forged;
    OK(MPI_Info_create(&forged));
    OK(MPI_Info_set(forged, kKey, "system,foo:bar"));
    const std::string true_kinds = told_by(MPI_COMM_WORLD);
    MPI_Comm duplicate, made;
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, forged, &duplicate));
    CHECK(told_by(duplicate) == true_kinds);
    OK(MPI_Comm_set_info(duplicate, forged));
    CHECK(told_by(duplicate) == true_kinds);
    MPI_Group group;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    OK(MPI_Comm_create_from_group(group, "tag", forged, MPI_ERRORS_RETURN, &made));
    CHECK(told_by(made) == true_kinds);
    MPI_Session session;
    MPI_Info of_session;
    OK(MPI_Session_init(forged, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_get_info(session, &of_session));
    CHECK(told(of_session) == true_kinds);
    OK(MPI_Session_finalize(&session));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&duplicate));
    OK(MPI_Comm_free(&made));
    OK(MPI_Info_free(&forged));
}

// Who gives a wrong group fails alone, and the next collective finds all ranks in step.
MPI_CASE(a_communicator_that_fails_on_one_rank_leaves_the_others_in_step, 3) {
    MPI_Comm pair, none;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank() < 2 ? 0 : MPI_UNDEFINED, rank(), &pair));
    if (pair == MPI_COMM_NULL) return;
    return_errors(pair);
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    if (rank() == 1)
        expect(MPI_Comm_create(pair, world, &none), MPI_ERR_GROUP, {}, "a group of strangers");
    else
        OK(MPI_Comm_create(pair, MPI_GROUP_EMPTY, &none));
    int sum = 0;
    const int one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, pair));
    CHECK_EQ(sum, 2);
    OK(MPI_Group_free(&world));
    OK(MPI_Comm_free(&pair));
}

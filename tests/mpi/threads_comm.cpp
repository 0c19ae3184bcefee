// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators, collectives, sessions and levels where several threads call MPI at once.
#include "threads.hpp"

#include <string>

using namespace mpi_tests;

namespace {

// What a rank of `comm` gets of everybody's numbers.
void collectives(MPI_Comm comm, int thread, int rounds) {
    const int ranks = size();
    for (int round = 0; round < rounds; ++round) {
        const int mine = thread * 1000 + round * 10 + rank();
        int sum = 0, told = rank() == round % ranks ? mine : -1;
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK_EQ(sum, ranks * (thread * 1000 + round * 10) + ranks * (ranks - 1) / 2);
        OK(MPI_Bcast(&told, 1, MPI_INT, round % ranks, comm));
        CHECK_EQ(told, thread * 1000 + round * 10 + round % ranks);
        std::vector<int> all(static_cast<std::size_t>(ranks), -1);
        MPI_Request request;
        OK(MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(all == numbers(all.size(), thread * 1000 + round * 10));
        if (round % 8 == 0) OK(MPI_Barrier(comm));
    }
}

std::vector<MPI_Comm> duplicates(int number) {
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(number));
    for (MPI_Comm& comm : comms)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    return comms;
}

void free_all(std::vector<MPI_Comm>& comms) {
    for (MPI_Comm& comm : comms)
        OK(MPI_Comm_free(&comm));
}

void keep(void*, void*, int*, MPI_Datatype*) {}
void ignore(MPI_Session*, int*, ...) {}

}  // namespace

MPI_CASE_OWN_INIT(threads_collectives_on_a_communicator_each, 3) {
    const Threaded mpi;
    std::vector<MPI_Comm> comms = duplicates(4);
    in_threads(
        4, [&](int thread) { collectives(comms[static_cast<std::size_t>(thread)], thread, 60); });
    free_all(comms);
}

// The threads agree on contexts at the same time, each on its own parent, in every way of making
// one; what is made is used at once.
MPI_CASE_OWN_INIT(threads_make_communicators_at_once, 3) {
    const Threaded mpi;
    std::vector<MPI_Comm> comms = duplicates(4);
    in_threads(4, [&](int thread) {
        const MPI_Comm parent = comms[static_cast<std::size_t>(thread)];
        for (int round = 0; round < 12; ++round) {
            MPI_Comm made = MPI_COMM_NULL;
            MPI_Request request;
            MPI_Group everybody;
            OK(MPI_Comm_group(parent, &everybody));
            switch ((round + thread) % 5) {
                case 0: OK(MPI_Comm_dup(parent, &made)); break;
                case 1: OK(MPI_Comm_split(parent, 0, rank(), &made)); break;
                case 2: OK(MPI_Comm_create(parent, everybody, &made)); break;
                case 3:
                    // All threads on one parent: tags keep them apart.
                    OK(MPI_Comm_create_group(MPI_COMM_WORLD, everybody, thread, &made));
                    break;
                default:
                    OK(MPI_Comm_idup(parent, &made, &request));
                    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            }
            OK(MPI_Group_free(&everybody));
            collectives(made, thread, 3);
            OK(MPI_Comm_free(&made));
        }
    });
    free_all(comms);
}

// Handles of every kind come and go in several threads; none is another's.
MPI_CASE_OWN_INIT(threads_make_and_free_handles, 1) {
    const Threaded mpi;
    in_threads(8, [](int thread) {
        for (int round = 0; round < 200; ++round) {
            MPI_Datatype type;
            MPI_Info info;
            MPI_Group world, one;
            MPI_Op op;
            int bytes = 0, keyval = 0, members = 0, flag = 0, length = 8;
            const std::string name = std::to_string(thread * 1000 + round);
            char value[16] = {}, key[] = "key";
            OK(MPI_Type_vector(3, thread + 1, 40, MPI_INT, &type));
            OK(MPI_Type_commit(&type));
            OK(MPI_Type_size(type, &bytes));
            CHECK_EQ(bytes, 12 * (thread + 1));
            OK(MPI_Info_create(&info));
            OK(MPI_Info_set(info, key, name.c_str()));
            length = sizeof value;
            OK(MPI_Info_get_string(info, key, &length, value, &flag));
            CHECK(name == value);
            OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
            OK(MPI_Group_incl(world, 1, &members, &one));
            OK(MPI_Group_size(one, &members));
            CHECK_EQ(members, 1);
            OK(MPI_Op_create(keep, 1, &op));
            OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval,
                                      nullptr));
            OK(MPI_Comm_free_keyval(&keyval));
            OK(MPI_Op_free(&op));
            OK(MPI_Group_free(&one));
            OK(MPI_Group_free(&world));
            OK(MPI_Info_free(&info));
            OK(MPI_Type_free(&type));
        }
    });
}

MPI_CASE_OWN_INIT(threads_get_the_level_that_they_ask_for, 1) {
    int given = -1, level = -1, main = -1;
    OK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given));
    CHECK_EQ(given, MPI_THREAD_MULTIPLE);
    OK(MPI_Query_thread(&level));
    CHECK_EQ(level, MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&main));
    CHECK_EQ(main, 1);
    in_threads(1, [](int) {
        int is_main = -1;
        OK(MPI_Is_thread_main(&is_main));
        CHECK_EQ(is_main, 0);
    });
    OK(MPI_Finalize());
}

// Calls that are legal at any time are so in any thread, whatever the level.
MPI_CASE_OWN_INIT(threads_before_init_and_after_finalize, 1) {
    const auto work = [](int thread) {
        for (int round = 0; round < 200; ++round) {
            int flag = -1, length = 0;
            char text[MPI_MAX_ERROR_STRING];
            MPI_Info info, copy;
            MPI_Errhandler handler;
            OK(MPI_Initialized(&flag));
            OK(MPI_Info_create(&info));
            OK(MPI_Info_set(info, "thread", std::to_string(thread).c_str()));
            OK(MPI_Info_dup(info, &copy));
            OK(MPI_Info_free(&info));
            OK(MPI_Info_get_nkeys(copy, &flag));
            CHECK_EQ(flag, 1);
            OK(MPI_Info_free(&copy));
            OK(MPI_Session_create_errhandler(ignore, &handler));
            OK(MPI_Errhandler_free(&handler));
            OK(MPI_Error_string(MPI_ERR_RANK, text, &length));
        }
    };
    in_threads(4, work);
    OK(MPI_Init(nullptr, nullptr));
    in_threads(4, work);
    OK(MPI_Finalize());
    in_threads(4, work);
}

MPI_CASE_OWN_INIT(threads_open_sessions_at_once, 2) {
    in_threads(4, [](int thread) {
        MPI_Info info;
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
        OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
        OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        OK(MPI_Comm_create_from_group(group, std::to_string(thread).c_str(), MPI_INFO_NULL,
                                      MPI_ERRORS_RETURN, &comm));
        for (int round = 0; round < 50; ++round) {
            int me = 0, ranks = 0, sum = 0;
            OK(MPI_Comm_rank(comm, &me));
            OK(MPI_Comm_size(comm, &ranks));
            const int mine = thread * 100 + me;
            OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK_EQ(sum, ranks * thread * 100 + ranks * (ranks - 1) / 2);
        }
        OK(MPI_Comm_free(&comm));
        OK(MPI_Group_free(&group));
        OK(MPI_Session_finalize(&session));
        OK(MPI_Info_free(&info));
    });
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions alone, beside MPI_Init, and around MPI_Finalize; who hears of one that cannot be made.
#include "refused.hpp"
#include "test.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

using namespace mpi_tests;

namespace {

struct Heard {
    int times = 0;
    bool null = false;
} by_session, by_comm;
void listen_to_sessions(MPI_Session* session, int*, ...) {
    ++by_session.times;
    by_session.null = *session == MPI_SESSION_NULL;
}
void listen_to_comms(MPI_Comm* comm, int*, ...) {
    ++by_comm.times;
    by_comm.null = *comm == MPI_COMM_NULL;
}
void listen_to_windows(MPI_Win*, int*, ...) {
    fail(__FILE__, __LINE__, "a handler of windows was called");
}

}  // namespace

MPI_CASE_OWN_INIT(sessions_alone_carry_messages_and_leave_the_job_properly, 3) {
    for (int round = 0; round < 3; ++round) {
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm;
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        OK(MPI_Comm_create_from_group(group, "gantry.test", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                      &comm));
        OK(MPI_Group_free(&group));
        int one = 1, sum = 0;
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK_EQ(sum, 3);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Session_finalize(&session));
    }
    int flag = -1;
    OK(MPI_Initialized(&flag));
    CHECK_EQ(flag, 0);
}

// Programs ask it for their rank and number before they have a communicator of a session.
MPI_CASE_OWN_INIT(the_world_is_known_where_only_a_session_is_open, 2) {
    MPI_Session session;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    int me = -1, all = -1, alone = -1;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &all));
    OK(MPI_Comm_size(MPI_COMM_SELF, &alone));
    CHECK_EQ(all, 2);
    CHECK_EQ(alone, 1);
    MPI_Message message = MPI_MESSAGE_NO_PROC;
    MPI_Request request;
    OK(MPI_Imrecv(nullptr, 0, MPI_INT, &message, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    // MPI_Init, when it comes, finds them.
    start_mpi();
    CHECK_EQ(rank(), me);
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(sum, all);
    OK(MPI_Finalize());
    OK(MPI_Session_finalize(&session));
}

namespace {

std::string level_of(MPI_Session session, const char* key) {
    MPI_Info info;
    char text[64] = "";
    int length = sizeof text, flag = 0;
    OK(MPI_Session_get_info(session, &info));
    OK(MPI_Info_get_string(info, key, &length, text, &flag));
    OK(MPI_Info_free(&info));
    return flag != 0 ? text : "not said";
}

}  // namespace

MPI_CASE_OWN_INIT(a_session_asks_for_a_thread_level, 1) {
    // What MPI_Init_thread would give for the highest is what a session gets at most.
    const std::string levels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
                                  "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};
    int provided = -1;
    for (const char* key : {"thread_level", "mpi_thread_support_level"})
        for (int wanted = 0; wanted < 4; ++wanted) {
            MPI_Info info;
            MPI_Session session;
            OK(MPI_Info_create(&info));
            OK(MPI_Info_set(info, key, levels[wanted].c_str()));
            OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
            const std::string got = level_of(session, "thread_level");
            CHECK(level_of(session, "mpi_thread_support_level") == got);
            CHECK(wanted == 3 || got == levels[wanted]);
            if (wanted == 3)
                provided = static_cast<int>(std::find(levels, levels + 4, got) - levels);
            OK(MPI_Session_finalize(&session));
            OK(MPI_Info_free(&info));
        }
    int of_init = -1;
    OK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &of_init));
    const int values[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                          MPI_THREAD_MULTIPLE};
    CHECK(provided < 4 && values[provided] == of_init);
    // Who asks for nothing gets what the process has.
    MPI_Session session;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    CHECK(level_of(session, "thread_level") == "MPI_THREAD_MULTIPLE");
    OK(MPI_Session_finalize(&session));
    OK(MPI_Finalize());
}

// What is attached to a session serves the communicators that come from it, unless they have their
// own, and no others.
MPI_CASE_OWN_INIT(a_session_has_a_buffer_for_its_communicators, 1) {
    MPI_Session session, other;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    const auto comm_of = [](MPI_Session of, const char* tag) {
        MPI_Group group, same;
        MPI_Comm comm;
        OK(MPI_Group_from_session_pset(of, "mpi://SELF", &group));
        OK(MPI_Group_union(group, group, &same));
        OK(MPI_Comm_create_from_group(same, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        OK(MPI_Group_free(&group));
        OK(MPI_Group_free(&same));
        return comm;
    };
    MPI_Comm comm = comm_of(session, "mine"), foreign = comm_of(other, "other"), copy;
    OK(MPI_Comm_dup(comm, &copy));
    char out[1000] = {7}, in[1000], memory[1000], own[500];
    CHECK_EQ(error_class(MPI_Bsend(out, 100, MPI_BYTE, 0, 0, comm)), MPI_ERR_BUFFER);
    OK(MPI_Session_attach_buffer(session, memory, sizeof memory));
    CHECK_EQ(error_class(MPI_Session_attach_buffer(session, memory, sizeof memory)),
             MPI_ERR_BUFFER);
    for (MPI_Comm each : {comm, copy}) {
        OK(MPI_Bsend(out, 1000, MPI_BYTE, 0, 0, each));
        OK(MPI_Recv(in, 1000, MPI_BYTE, 0, 0, each, MPI_STATUS_IGNORE));
        CHECK_EQ(in[0], 7);
        OK(MPI_Session_flush_buffer(session));
    }
    CHECK_EQ(error_class(MPI_Bsend(out, 1000, MPI_BYTE, 0, 0, foreign)), MPI_ERR_BUFFER);
    OK(MPI_Comm_attach_buffer(comm, own, sizeof own));
    CHECK_EQ(error_class(MPI_Bsend(out, 1000, MPI_BYTE, 0, 0, comm)), MPI_ERR_BUFFER);
    void* address = nullptr;
    int bytes = 0;
    OK(MPI_Comm_detach_buffer(comm, &address, &bytes));
    MPI_Request flush;
    OK(MPI_Session_iflush_buffer(session, &flush));
    OK(MPI_Wait(&flush, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_iflush(&flush));
    OK(MPI_Wait(&flush, MPI_STATUS_IGNORE));
    OK(MPI_Session_detach_buffer(session, &address, &bytes));
    CHECK(address == memory && bytes == 1000);
    CHECK_EQ(error_class(MPI_Session_detach_buffer(session, &address, &bytes)), MPI_ERR_BUFFER);
    for (MPI_Comm* each : {&comm, &foreign, &copy})
        OK(MPI_Comm_free(each));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Session_finalize(&other));
}

MPI_CASE_OWN_INIT(a_session_that_is_open_during_finalize_keeps_mpi, 2) {
    MPI_Session kept, late;
    MPI_Group group;
    MPI_Comm comm;
    start_mpi();
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &kept));
    MPI_Finalize();
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &late));
    OK(MPI_Session_finalize(&kept));
    OK(MPI_Group_from_session_pset(late, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "late", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, 2);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&late));
}

MPI_CASE_OWN_INIT(a_session_after_finalize_is_refused_and_told_how_it_could_be, 2) {
    start_mpi();
    MPI_Finalize();
    MPI_Session session;
    expect(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_ERR_OTHER,
           {"open during MPI_Finalize"}, "a session after MPI_Finalize");
}

MPI_CASE_OWN_INIT(a_call_that_makes_nothing_is_heard_by_the_handler_it_was_given, 1) {
    const auto no_info = reinterpret_cast<MPI_Info>(std::uintptr_t{0x123456789});
    MPI_Errhandler of_sessions, of_comms, of_windows;
    OK(MPI_Session_create_errhandler(listen_to_sessions, &of_sessions));
    OK(MPI_Comm_create_errhandler(listen_to_comms, &of_comms));
    OK(MPI_Win_create_errhandler(listen_to_windows, &of_windows));
    MPI_Session session;
    CHECK_EQ(error_class(MPI_Session_init(no_info, of_sessions, &session)), MPI_ERR_INFO);
    CHECK(by_session.times == 1 && by_session.null);
    CHECK_EQ(error_class(MPI_Session_init(no_info, MPI_ERRORS_RETURN, &session)), MPI_ERR_INFO);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Comm comm;
    CHECK_EQ(error_class(
                 MPI_Comm_create_from_group(MPI_GROUP_NULL, "tag", MPI_INFO_NULL, of_comms, &comm)),
             MPI_ERR_GROUP);
    CHECK(by_comm.times == 1 && by_comm.null);
    OK(MPI_Session_finalize(&session));
    // One that is none, or none for such an object, cannot hear of it.
    start_mpi();
    return_errors(MPI_COMM_SELF);
    const auto freed = of_sessions;
    OK(MPI_Errhandler_free(&of_sessions));
    CHECK_EQ(error_class(MPI_Session_init(MPI_INFO_NULL, freed, &session)), MPI_ERR_ERRHANDLER);
    expect(MPI_Session_init(MPI_INFO_NULL, of_windows, &session), MPI_ERR_ARG,
           {"MPI_Session_create_errhandler"}, "a session with a handler of windows");
    expect(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "tag", MPI_INFO_NULL, of_windows, &comm),
           MPI_ERR_ARG, {"MPI_Comm_create_errhandler"}, "a communicator with one");
    CHECK_EQ(by_session.times, 1);
    OK(MPI_Errhandler_free(&of_comms));
    OK(MPI_Errhandler_free(&of_windows));
    MPI_Finalize();
}

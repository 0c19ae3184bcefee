// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_PROGRESS=thread: messages go on while the program computes. A rank that "computes" here
// looks at a word of memory that the other rank sets, and calls no MPI meanwhile: without the
// thread both would wait for ever, so the looking ends after kPatience and the case fails. With
// GANTRY_PROGRESS=calls in the environment every case about a computing rank must fail.
#include "progress.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace mpi_tests;

// --- a rank that computes ------------------------------------------------------------------------

MPI_CASE_OWN_INIT(progress_device_to_device, 2) {
    use_device(0);
    start_with_thread();
    the_sender_computes(Kind::device, Kind::device);
    the_receiver_computes(Kind::device, Kind::device);
    finish();
}

MPI_CASE_OWN_INIT(progress_between_two_gpus, 2) {
    if (gpu().count < 2) skip("there is one GPU only");
    start_with_thread();
    use_device(rank());
    {
        Memory memory(Kind::device, kLarge, rank());
        warm_up(memory);
        SharedWord word;
        memory.fill(rank() == 0 ? 7 : 99);
        if (rank() == 0) {
            MPI_Request request;
            OK(MPI_Isend(memory.data(), kLarge, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
            CHECK(word.compute_until(1));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(memory.data(), kLarge, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_EQ(memory.differs(7, kLarge), -1);
            word.set(1);
        }
    }
    finish();
}

MPI_CASE_OWN_INIT(progress_device_to_host, 2) {
    use_device(0);
    start_with_thread();
    the_sender_computes(Kind::device, Kind::host);
    the_receiver_computes(Kind::device, Kind::pinned);
    finish();
}

MPI_CASE_OWN_INIT(progress_host_to_device, 2) {
    use_device(0);
    start_with_thread();
    the_sender_computes(Kind::host, Kind::device);
    the_receiver_computes(Kind::pinned, Kind::device);
    finish();
}

MPI_CASE_OWN_INIT(progress_staged_without_ipc, 2) {
    setenv("GANTRY_IPC", "off", 1);
    use_device(0);
    start_with_thread();
    the_sender_computes(Kind::device, Kind::device);
    the_receiver_computes(Kind::device, Kind::device);
    finish();
}

// Cells of the shared pool: no driver at all.
MPI_CASE_OWN_INIT(progress_host_to_host, 2) {
    start_with_thread();
    std::vector<unsigned> buffer(16u << 20);
    const int count = static_cast<int>(buffer.size());
    SharedWord word;
    for (unsigned round = 1; round <= 4; ++round) {
        std::fill(buffer.begin(), buffer.end(), rank() == 0 ? round : 99);
        const bool sender_computes = round % 2 == 0;
        MPI_Request request;
        if (rank() == 0)
            OK(MPI_Isend(buffer.data(), count, MPI_UNSIGNED, 1, 0, MPI_COMM_WORLD, &request));
        else
            OK(MPI_Irecv(buffer.data(), count, MPI_UNSIGNED, 0, 0, MPI_COMM_WORLD, &request));
        if ((rank() == 0) == sender_computes) {
            CHECK(word.compute_until(round));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            word.set(round);
        }
        if (rank() == 1) CHECK(buffer.front() == round && buffer.back() == round);
    }
    finish();
}

// More than the ring between two ranks holds: what waits behind it leaves while we compute.
MPI_CASE_OWN_INIT(progress_of_many_small_messages, 2) {
    start_with_thread();
    constexpr int kMessages = 4000;
    std::vector<char> payload(1000, 'x');
    SharedWord word;
    if (rank() == 0) {
        std::vector<MPI_Request> requests(kMessages);
        for (MPI_Request& request : requests)
            OK(MPI_Isend(payload.data(), 1000, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request));
        CHECK(word.compute_until(1));
        OK(MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE));
    } else {
        for (int i = 0; i < kMessages; ++i)
            OK(MPI_Recv(payload.data(), 1000, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        word.set(1);
    }
    finish();
}

MPI_CASE_OWN_INIT(progress_of_a_collective, 3) {
    start_with_thread();
    std::vector<int> mine(300000, rank()), sum(mine.size());
    SharedWord word;
    MPI_Request request;
    OK(MPI_Iallreduce(mine.data(), sum.data(), static_cast<int>(mine.size()), MPI_INT, MPI_SUM,
                      MPI_COMM_WORLD, &request));
    // Nobody's result is complete without this rank's part in every step.
    if (rank() == 0) CHECK(word.compute_until(2));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank() != 0) word.add(1);
    CHECK(sum.front() == 3 && sum.back() == 3);
    finish();
}

// --- what is the program's own stays in the program's threads ------------------------------------

namespace {

pthread_t main_thread;
int operations_elsewhere = 0, operations_done = 0;

void add(void* in, void* inout, int* count, MPI_Datatype*) {
    if (pthread_equal(main_thread, pthread_self()) == 0) ++operations_elsewhere;
    ++operations_done;
    for (int i = 0; i < *count; ++i)
        static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

}  // namespace

MPI_CASE_OWN_INIT(progress_calls_user_operations_in_the_program_s_thread, 2) {
    start_with_thread();
    main_thread = pthread_self();
    MPI_Op op;
    OK(MPI_Op_create(add, 1, &op));
    SharedWord word;
    for (int round = 1; round <= 20; ++round) {
        int mine = rank() + round, sum = 0, behind = 0;
        MPI_Request reduction, message;
        OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &reduction));
        if (rank() == 0) {
            OK(MPI_Irecv(&behind, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &message));
            CHECK(word.compute_until(static_cast<unsigned>(round)));
            OK(MPI_Wait(&message, MPI_STATUS_IGNORE));
            CHECK_EQ(behind, round);
        } else {
            // It was sent behind the collective's message: once it is matched, that has come, too.
            OK(MPI_Ssend(&round, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
            word.set(static_cast<unsigned>(round));
        }
        OK(MPI_Wait(&reduction, MPI_STATUS_IGNORE));
        CHECK_EQ(sum, 2 * round + 1);
    }
    CHECK_EQ(operations_elsewhere, 0);
    CHECK_EQ(operations_done, 20);
    OK(MPI_Op_free(&op));
    finish();
}

namespace {

int handler_calls = 0, handler_rank = -1;
void handler(MPI_Comm* comm, int*, ...) {
    ++handler_calls;
    MPI_Comm_rank(*comm, &handler_rank);  // a call inside a call
}

}  // namespace

MPI_CASE_OWN_INIT(progress_lets_error_handlers_call_mpi, 2) {
    start_with_thread();
    MPI_Errhandler errhandler;
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler));
    CHECK(MPI_Send(nullptr, -1, MPI_INT, 0, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
    CHECK_EQ(handler_calls, 1);
    CHECK_EQ(handler_rank, rank());
    OK(MPI_Errhandler_free(&errhandler));
    finish();
}

// --- rest, signals, fork, the end ----------------------------------------------------------------

MPI_CASE_OWN_INIT(progress_asks_the_driver_nothing_when_idle, 2) {
    use_device(0);
    start_with_thread();
    if (!gpu().simulated) skip("a real GPU does not count calls");
    {
        Memory memory(Kind::device, kLarge);
        warm_up(memory);
        int word = 0;
        MPI_Request request;  // waits for a message that comes later
        OK(MPI_Irecv(&word, 1, MPI_INT, 1 - rank(), 3, MPI_COMM_WORLD, &request));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        reset_calls();
        const double begin = MPI_Wtime();
        while (MPI_Wtime() < begin + 0.1) {
        }
        // None but the regular look at exported memory (every 10 ms), which may come between these
        // two.
        const Calls all = calls(), looks = calls();
        CHECK(all.all <= looks.attribute);
        CHECK(all.attribute <= 1 + static_cast<std::uint64_t>((MPI_Wtime() - begin) / 0.010));
        OK(MPI_Send(&word, 1, MPI_INT, 1 - rank(), 3, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    finish();
}

MPI_CASE_OWN_INIT(progress_thread_takes_no_signals, 1) {
    start_with_thread();
    const std::vector<std::string> threads = progress_threads();
    CHECK_EQ(threads.size(), 1);
    std::ifstream status("/proc/self/task/" + (threads.empty() ? "self" : threads[0]) + "/status");
    std::string line;
    while (std::getline(status, line))
        if (line.rfind("SigBlk:", 0) == 0)
            // All but SIGKILL, SIGSTOP and the two that the C library keeps for itself.
            CHECK_EQ(std::stoull(line.substr(7), nullptr, 16) | 0x1'8004'0100,
                     0xffff'ffff'ffff'ffff);
    finish();
}

MPI_CASE_OWN_INIT(progress_survives_fork, 2) {
    start_with_thread();
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int round = 0; round < 50; ++round) {
        int in = -1;
        MPI_Request request;
        OK(MPI_Irecv(&in, 1, MPI_INT, 1 - rank(), 0, MPI_COMM_WORLD, &request));
        const pid_t child = fork();
        if (child == 0) {
            // Not a process of the job: an error, and no waiting for a thread that is not here.
            int my_rank = 0;
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            _exit(MPI_Comm_rank(MPI_COMM_WORLD, &my_rank) == MPI_SUCCESS ? 1 : 0);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child);
        OK(MPI_Send(&round, 1, MPI_INT, 1 - rank(), 0, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK_EQ(in, round);
    }
    finish();
}

MPI_CASE_OWN_INIT(progress_with_sessions, 2) {
    setenv("GANTRY_PROGRESS", "thread", 0);
    for (int round = 0; round < 3; ++round) {
        MPI_Session session;
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        CHECK_EQ(progress_threads().size(), 1);
        MPI_Group group;
        MPI_Comm comm;
        OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        OK(MPI_Comm_create_from_group(group, "progress", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        OK(MPI_Barrier(comm));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Group_free(&group));
        OK(MPI_Session_finalize(&session));
        wait_for_the_end_of_threads();
    }
}

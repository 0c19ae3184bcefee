// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that wait inside MPI at the same time: one drives the engine, the others sleep, and
// functions of the program are called with the engine open to all.
#include "threads.hpp"
#include "tool.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

using namespace mpi_tests;

namespace {

void wait_until(const std::atomic<bool>& flag) {
    while (!flag)
        sched_yield();
}

long long cpu_time(pthread_t thread) {
    clockid_t clock;
    timespec used{};
    if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
    return used.tv_sec * 1'000'000'000LL + used.tv_nsec;
}

int receive(int tag) {
    int value = -1;
    OK(MPI_Recv(&value, 1, MPI_INT, 1 - rank(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return value;
}
void send(int value, int tag) {
    OK(MPI_Send(&value, 1, MPI_INT, 1 - rank(), tag, MPI_COMM_WORLD));
}

constexpr int kGo = 500;

}  // namespace

// Of four threads that wait for long, one works.
MPI_CASE_OWN_INIT(threads_that_wait_sleep, 2) {
    const Threaded mpi;
    constexpr int kThreads = 4;
    if (rank() == 1) {
        CHECK_EQ(receive(kGo), 1);
        for (int thread = 0; thread < kThreads; ++thread)
            send(thread, thread);
        return;
    }
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([thread] { CHECK_EQ(receive(thread), thread); });
    // Processor time, not time: whoever drives offers its processor to others again and again.
    constexpr long long kLong = 5'000'000;  // ns
    std::vector<long long> before(kThreads), used(kThreads);
    // Not all may have come to their waits at first. Where they never sleep, only the time limit of the test
    // ends this.
    do {
        for (std::size_t i = 0; i < used.size(); ++i)
            before[i] = cpu_time(threads[i].native_handle());
        do {
            sched_yield();
            for (std::size_t i = 0; i < used.size(); ++i)
                used[i] = cpu_time(threads[i].native_handle()) - before[i];
        } while (*std::max_element(used.begin(), used.end()) < kLong);
        std::sort(used.begin(), used.end());
    } while (used[0] + used[1] + used[2] >= kLong / 2);
    send(1, kGo);
    for (std::thread& thread : threads)
        thread.join();
}

// A thread whose wait is over leaves the engine to those who still wait.
MPI_CASE_OWN_INIT(threads_hand_over_the_engine, 2) {
    const Threaded mpi;
    for (int round = 0; round < 50; ++round) {
        if (rank() == 1) {
            send(round, 0);
            CHECK_EQ(receive(kGo), round);
            send(round, 1);
            continue;
        }
        std::atomic<bool> second_done{false};
        in_threads(2, [&](int thread) {
            CHECK_EQ(receive(thread), round);
            if (thread == 0) {
                send(round, kGo);
                wait_until(second_done);  // in no call of MPI
            } else {
                second_done = true;
            }
        });
    }
}

// While one thread sends and receives again and again, those that wait for something else sleep: the
// one that comes does what is to be done.
MPI_CASE_OWN_INIT(threads_that_come_again_wake_no_others, 2) {
    const Threaded mpi;
    constexpr int kRounds = 300, kThreads = 3;
    const Tool tool;
    Counted called(tool, "threads_called"), deputies(tool, "deputies_resigned");
    called.start();
    deputies.start();
    in_threads(kThreads, [&](int thread) {
        if (thread > 0) {
            CHECK_EQ(receive(kGo + thread), thread);
            return;
        }
        const Counted waiting(tool, "posted_receives");
        while (waiting.read() < kThreads - 1)
            sched_yield();
        for (int round = 0; round < kRounds; ++round) {
            if (rank() == 0) send(round, 0);
            CHECK_EQ(receive(0), round);
            if (rank() == 1) send(round, 0);
        }
        // Nothing has come for the others, so they are called to drive alone: where a drive ends and
        // the standby poller has resigned, which on a quiet machine is never. Each is called once then. And
        // this thread is called when one of the others comes to drive after it.
        const std::uint64_t calls = called.read();
        CHECK(calls <= (kThreads - 1) * (1 + deputies.read()));
        send(kRounds, 1);
        CHECK_EQ(receive(1), kRounds);  // the other rank has read its own
        for (int other = 1; other < kThreads; ++other)
            send(other, kGo + other);
    });
}

// A thread that computes for long needs no other to be told of its message: whoever calls MPI at all
// ends what has come for others.
MPI_CASE_OWN_INIT(threads_end_each_others_requests, 2) {
    const Threaded mpi;
    in_threads(2, [](int thread) {
        for (int round = 0; round < 200; ++round) {
            MPI_Request request = MPI_REQUEST_NULL;
            int got = -1, flag = 0;
            OK(MPI_Irecv(&got, 1, MPI_INT, 1 - rank(), thread, MPI_COMM_WORLD, &request));
            send(round, thread);
            if (thread == 0) {
                while (flag == 0)
                    OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            }
            CHECK_EQ(got, round);
        }
    });
}

namespace {

std::atomic<int> freed{0};

// It may call MPI, and wait there for another thread.
int query(void*, MPI_Status* status) {
    int out = 4, in = -1;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 7, &in, 1, MPI_INT, 0, 7, MPI_COMM_SELF,
                    MPI_STATUS_IGNORE));
    CHECK_EQ(in, out);
    OK(MPI_Status_set_elements(status, MPI_BYTE, 3));
    return MPI_Status_set_cancelled(status, 0);
}
int count_free(void*) {
    ++freed;
    return MPI_SUCCESS;
}
int no_cancel(void*, int) {
    return MPI_SUCCESS;
}

}  // namespace

// A generalized request is completed by another thread, while one waits for it among others.
MPI_CASE_OWN_INIT(threads_complete_a_generalized_request, 2) {
    const Threaded mpi;
    MPI_Request mine[2], own;
    int got = -1;
    OK(MPI_Grequest_start(query, count_free, no_cancel, nullptr, &own));
    OK(MPI_Irecv(&got, 1, MPI_INT, 1 - rank(), 0, MPI_COMM_WORLD, &mine[0]));
    mine[1] = own;
    std::thread waiting([&] {
        int index = -1;
        OK(MPI_Waitany(2, mine, &index, MPI_STATUS_IGNORE));
        CHECK_EQ(index, 1);
        CHECK(mine[1] == MPI_REQUEST_NULL);
    });
    OK(MPI_Grequest_complete(own));
    waiting.join();
    CHECK_EQ(freed.load(), 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    send(5, 0);
    OK(MPI_Wait(&mine[0], MPI_STATUS_IGNORE));
    CHECK_EQ(got, 5);
}

namespace {

std::atomic<bool> called{false}, others_done{false};

// A function of the program that waits for another thread, which calls MPI meanwhile.
void wait_for_the_others() {
    called = true;
    wait_until(others_done);
}

// Runs `call` in one thread, which comes to wait_for_the_others(), beside another that uses MPI.
template <class Call>
void beside(const Call& call) {
    called = others_done = false;
    in_threads(2, [&](int thread) {
        if (thread == 0) return call();
        wait_until(called);
        int value = 3, got = 0;
        OK(MPI_Sendrecv(&value, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, MPI_COMM_SELF,
                        MPI_STATUS_IGNORE));
        CHECK_EQ(got, 3);
        others_done = true;
    });
}

int copy_attribute(MPI_Comm comm, int, void*, void* value, void* copy, int* flag) {
    int ranks = 0;
    OK(MPI_Comm_size(comm, &ranks));
    wait_for_the_others();
    std::memcpy(copy, &value, sizeof value);
    *flag = 1;
    return MPI_SUCCESS;
}
int delete_attribute(MPI_Comm, int, void*, void*) {
    wait_for_the_others();
    return MPI_SUCCESS;
}
void handle_error(MPI_Comm*, int* code, ...) {
    CHECK_EQ(error_class(*code), MPI_ERR_RANK);
    wait_for_the_others();
}

}  // namespace

MPI_CASE_OWN_INIT(threads_use_mpi_while_an_attribute_is_copied_and_deleted, 1) {
    const Threaded mpi;
    int keyval = MPI_KEYVAL_INVALID;
    OK(MPI_Comm_create_keyval(copy_attribute, delete_attribute, &keyval, nullptr));
    MPI_Comm first, second;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &first));
    OK(MPI_Comm_set_attr(first, keyval, &keyval));
    beside([&] { OK(MPI_Comm_dup(first, &second)); });
    beside([&] { OK(MPI_Comm_free(&first)); });
    beside([&] { OK(MPI_Comm_delete_attr(second, keyval)); });
    OK(MPI_Comm_free(&second));
    OK(MPI_Comm_free_keyval(&keyval));
}

MPI_CASE_OWN_INIT(threads_use_mpi_while_an_error_handler_runs, 1) {
    const Threaded mpi;
    MPI_Comm comm;
    MPI_Errhandler handler;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_create_errhandler(handle_error, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Errhandler_free(&handler));
    beside([&] {
        const int code = MPI_Send(nullptr, 0, MPI_INT, 5, 0, comm);
        CHECK_EQ(error_class(code), MPI_ERR_RANK);
    });
    OK(MPI_Comm_free(&comm));
}

// What MPI_Error_string says is about the calling thread's failure.
MPI_CASE_OWN_INIT(threads_hear_of_their_own_failures, 1) {
    const Threaded mpi;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    in_threads(4, [](int thread) {
        for (int round = 0; round < 100; ++round) {
            const int wrong = 100 + thread;
            const int code = MPI_Send(nullptr, 0, MPI_INT, wrong, 0, MPI_COMM_SELF);
            sched_yield();
            char text[MPI_MAX_ERROR_STRING];
            int length = 0;
            OK(MPI_Error_string(code, text, &length));
            CHECK(std::string(text).find(std::to_string(wrong)) != std::string::npos);
        }
    });
}

// Only whoever makes progress is needed: the main thread ends MPI while others do something else.
MPI_CASE_OWN_INIT(threads_that_are_idle_outlive_finalize, 2) {
    std::atomic<bool> worked{false}, over{false};
    start_mpi(MPI_THREAD_MULTIPLE);
    std::thread other([&] {
        send(1, 0);
        CHECK_EQ(receive(0), 1);
        worked = true;
        wait_until(over);
        int flag = 0;
        OK(MPI_Finalized(&flag));
        CHECK_EQ(flag, 1);
    });
    wait_until(worked);
    OK(MPI_Finalize());
    over = true;
    other.join();
}

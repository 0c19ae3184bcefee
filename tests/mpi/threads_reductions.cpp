// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction functions of a program with several threads run outside of the engine: they may need a
// lock that another thread holds while it calls MPI, as functions written in Python do.
#include "threads.hpp"

#include <sched.h>

#include <atomic>
#include <mutex>

using namespace mpi_tests;

namespace {

// What a reduction function needs and every other thread that runs Python code has.
std::mutex interpreter;
std::atomic<int> calls{0};

void add(void* in, void* inout, int* length, MPI_Datatype*) {
    ++calls;
    const std::lock_guard<std::mutex> lock(interpreter);
    for (int i = 0; i < *length; ++i)
        static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

struct UserOp {
    explicit UserOp(MPI_User_function* function) { OK(MPI_Op_create(function, 1, &op)); }
    ~UserOp() { OK(MPI_Op_free(&op)); }
    UserOp(const UserOp&) = delete;
    UserOp& operator=(const UserOp&) = delete;
    MPI_Op op = MPI_OP_NULL;
};

// Runs `reduce`, in which `add` is called, beside a thread that calls MPI with the lock: before `add`
// wants it, and when it does.
template <class Reduce>
void beside_python(const Reduce& reduce) {
    calls = 0;
    std::atomic<bool> reduced{false}, locked{false};
    in_threads(2, [&](int thread) {
        if (thread == 0) {
            while (!locked)
                sched_yield();
            reduce();
            reduced = true;
            return;
        }
        const std::lock_guard<std::mutex> lock(interpreter);
        locked = true;
        int size = 0;
        do {
            OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
            sched_yield();
        } while (calls == 0 && !reduced);
        OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
        CHECK_EQ(size, 2);
    });
}

}  // namespace

MPI_CASE_OWN_INIT(threads_call_mpi_with_the_lock_of_a_reduction_function, 2) {
    const Threaded mpi;
    const UserOp sum(add);
    int sums[3] = {};
    const int mine[3] = {1, rank(), 5};
    const auto check = [&] {
        CHECK_EQ(sums[0], 2);
        CHECK_EQ(sums[1], 1);
        CHECK_EQ(sums[2], 10);
        sums[0] = 0;
    };
    beside_python([&] {
        OK(MPI_Allreduce(mine, sums, 3, MPI_INT, sum.op, MPI_COMM_WORLD));
        check();
    });
    beside_python([&] {
        MPI_Request request = MPI_REQUEST_NULL;
        OK(MPI_Iallreduce(mine, sums, 3, MPI_INT, sum.op, MPI_COMM_WORLD, &request));
        for (int flag = 0; flag == 0;)
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        check();
    });
    beside_python([&] {
        int inout[3] = {1, 1 - rank(), 5};
        OK(MPI_Reduce_local(mine, inout, 3, MPI_INT, sum.op));
        for (int i = 0; i < 3; ++i)
            sums[i] = inout[i];
        check();
    });
    beside_python([&] {
        OK(MPI_Scan(mine, sums, 3, MPI_INT, sum.op, MPI_COMM_WORLD));
        CHECK_EQ(sums[0], rank() + 1);
    });
}

namespace {

std::atomic<bool> received{false}, waits_for_receive{false};

void add_when_received(void* in, void* inout, int* length, MPI_Datatype* datatype) {
    int size = 0;
    OK(MPI_Type_size(*datatype, &size));
    CHECK_EQ(size, static_cast<int>(sizeof(int)));
    waits_for_receive = true;
    while (!received)
        sched_yield();
    for (int i = 0; i < *length; ++i)
        static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

}  // namespace

// Whoever waits for a collective leaves the engine to others while it calls the program's function.
MPI_CASE_OWN_INIT(threads_drive_the_engine_while_a_reduction_function_runs, 2) {
    const Threaded mpi;
    const UserOp sum(add_when_received);
    for (int round = 0; round < 20; ++round) {
        received = waits_for_receive = false;
        in_threads(2, [&](int thread) {
            int value = round, got = -1;
            if (thread == 0) {
                OK(MPI_Allreduce(&value, &got, 1, MPI_INT, sum.op, MPI_COMM_WORLD));
                CHECK_EQ(got, 2 * round);
                waits_for_receive = true;  // where the algorithm calls no function on this rank
                return;
            }
            while (!waits_for_receive)
                sched_yield();
            OK(MPI_Sendrecv(&value, 1, MPI_INT, 1 - rank(), 0, &got, 1, MPI_INT, 1 - rank(), 0,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_EQ(got, round);
            received = true;
        });
    }
}

// Each thread its own communicator; functions of one operation run in several threads at once.
MPI_CASE_OWN_INIT(threads_reduce_with_functions_at_once, 2) {
    const Threaded mpi;
    constexpr int kThreads = 4, kRounds = 30;
    const UserOp sum(add);
    std::vector<MPI_Comm> comms(kThreads);
    for (MPI_Comm& comm : comms)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    in_threads(kThreads, [&](int thread) {
        for (int round = 0; round < kRounds; ++round) {
            const std::vector<int> mine = numbers(thread % 2 == 0 ? 3 : 3000, round + thread);
            std::vector<int> sums(mine.size());
            MPI_Comm comm = comms[static_cast<std::size_t>(thread)];
            if (round % 2 == 0) {
                OK(MPI_Allreduce(mine.data(), sums.data(), static_cast<int>(mine.size()), MPI_INT,
                                 sum.op, comm));
            } else {
                MPI_Request request = MPI_REQUEST_NULL;
                OK(MPI_Iallreduce(mine.data(), sums.data(), static_cast<int>(mine.size()), MPI_INT,
                                  sum.op, comm, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            }
            for (std::size_t i = 0; i < sums.size(); ++i)
                CHECK_EQ(sums[i], 2 * mine[i]);
        }
    });
    for (MPI_Comm& comm : comms)
        OK(MPI_Comm_free(&comm));
}

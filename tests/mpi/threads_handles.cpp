// SPDX-License-Identifier: BSD-3-Clause
//
// Several threads use one handle, or free what another one works with.
#include "threads.hpp"

#include <atomic>
#include <mutex>

namespace mpi_tests {
namespace {

constexpr int kTag = 5, kThreads = 4, kMessages = 60;

void wait_until(const std::atomic<bool>& flag) {
    while (!flag.load())
        std::this_thread::yield();
}

// One way to end a request; true: this thread has ended it.
using End = bool (*)(MPI_Request* request);

bool ends_test(MPI_Request* request) {
    MPI_Status status{};
    int flag = 0;
    OK(MPI_Test(request, &flag, &status));
    return flag != 0 && status.MPI_TAG == kTag;
}
bool ends_testall(MPI_Request* request) {
    MPI_Status status{};
    int flag = 0;
    OK(MPI_Testall(1, request, &flag, &status));
    return flag != 0 && status.MPI_TAG == kTag;
}
bool ends_testany(MPI_Request* request) {
    MPI_Status status{};
    int flag = 0, index = -1;
    OK(MPI_Testany(1, request, &index, &flag, &status));
    return flag != 0 && index == 0 && status.MPI_TAG == kTag;
}
bool ends_testsome(MPI_Request* request) {
    MPI_Status status{};
    int count = 0, index = -1;
    OK(MPI_Testsome(1, request, &count, &index, &status));
    return count == 1 && status.MPI_TAG == kTag;
}
bool ends_wait(MPI_Request* request) {
    MPI_Status status{};
    OK(MPI_Wait(request, &status));
    return status.MPI_TAG == kTag;
}
bool ends_waitall(MPI_Request* request) {
    MPI_Status status{};
    OK(MPI_Waitall(1, request, &status));
    return status.MPI_TAG == kTag;
}
bool ends_waitany(MPI_Request* request) {
    MPI_Status status{};
    int index = -1;
    OK(MPI_Waitany(1, request, &index, &status));
    return index == 0 && status.MPI_TAG == kTag;
}
bool ends_waitsome(MPI_Request* request) {
    MPI_Status status{};
    int count = 0, index = -1;
    OK(MPI_Waitsome(1, request, &count, &index, &status));
    return count == 1 && status.MPI_TAG == kTag;
}

constexpr End kEnds[] = {ends_test, ends_testall, ends_testany, ends_testsome,
                         ends_wait, ends_waitall, ends_waitany, ends_waitsome};

// Rank 1 sends; threads of rank 0 end one receive after the other, whose handle they share.
template <class Post>
void share_a_request(End end, MPI_Request* request, const int* got, const Post& post) {
    if (rank() == 1) {
        for (int i = 0; i < kMessages; ++i)
            OK(MPI_Send(&i, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD));
        return;
    }
    std::mutex one_by_one;
    std::atomic<int> ended{0};
    post();
    in_threads(kThreads, [&](int) {
        while (ended.load() < kMessages) {
            if (!end(request)) {
                std::this_thread::yield();
                continue;
            }
            const std::lock_guard lock(one_by_one);
            CHECK_EQ(*got, ended.load());
            if (ended.load() + 1 < kMessages) post();
            ++ended;
        }
    });
    CHECK_EQ(ended.load(), kMessages);
}

}  // namespace

MPI_CASE_OWN_INIT(threads_share_a_request, 2) {
    const Threaded mpi;
    for (const End end : kEnds) {
        MPI_Request request = MPI_REQUEST_NULL;
        int got = -1;
        share_a_request(end, &request, &got, [&] {
            OK(MPI_Irecv(&got, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request));
        });
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

MPI_CASE_OWN_INIT(threads_share_a_persistent_request, 2) {
    const Threaded mpi;
    for (const End end : kEnds) {
        MPI_Request request = MPI_REQUEST_NULL;
        int got = -1;
        OK(MPI_Recv_init(&got, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD, &request));
        share_a_request(end, &request, &got, [&] { OK(MPI_Start(&request)); });
        OK(MPI_Request_free(&request));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

namespace {

std::atomic<bool> asked{false}, others_tested{false};
std::atomic<int> queries{0}, frees{0};

// Other threads test the same request while this runs.
int query(void*, MPI_Status* status) {
    ++queries;
    asked = true;
    wait_until(others_tested);
    OK(MPI_Status_set_elements(status, MPI_BYTE, 3));
    return MPI_Status_set_cancelled(status, 0);
}
int count_free(void*) {
    ++frees;
    return MPI_SUCCESS;
}
int no_cancel(void*, int) {
    return MPI_SUCCESS;
}

}  // namespace

MPI_CASE_OWN_INIT(threads_share_a_generalized_request, 1) {
    const Threaded mpi;
    MPI_Request request;
    OK(MPI_Grequest_start(query, count_free, no_cancel, nullptr, &request));
    OK(MPI_Grequest_complete(request));
    in_threads(2, [&](int thread) {
        int flag = 0;
        if (thread == 1) wait_until(asked);
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK_EQ(flag, 1);
        if (thread == 1) others_tested = true;
    });
    CHECK(request == MPI_REQUEST_NULL);
    CHECK_EQ(queries.load(), 1);
    CHECK_EQ(frees.load(), 1);
}

// A thread of rank 0 waits for a message with a communicator and a type that another one frees.
MPI_CASE_OWN_INIT(threads_free_what_another_one_receives_with, 2) {
    const Threaded mpi;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    int none = 0;
    if (rank() == 1) {
        // Thus the other rank is inside its call.
        OK(MPI_Recv(&none, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
        OK(MPI_Sendrecv(&none, 1, MPI_INT, 0, 2, &none, 1, MPI_INT, 0, 3, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        const int all[] = {11, 22, 33};
        OK(MPI_Send(all, 3, MPI_INT, 0, 4, comm));
        OK(MPI_Comm_free(&comm));
        return;
    }
    MPI_Datatype every_other;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    in_threads(2, [&](int thread) {
        if (thread == 0) {
            const MPI_Comm mine = comm;
            const MPI_Datatype type = every_other;
            int got[6] = {}, word = 0;
            OK(MPI_Sendrecv(&word, 1, MPI_INT, 1, 1, got, 1, type, 1, 4, mine, MPI_STATUS_IGNORE));
            CHECK_EQ(got[0], 11);
            CHECK_EQ(got[2], 22);
            CHECK_EQ(got[4], 33);
        } else {
            MPI_Comm mine = comm;
            MPI_Datatype type = every_other;
            OK(MPI_Recv(&none, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Comm_free(&mine));
            OK(MPI_Type_free(&type));
            // What comes next in their places is not theirs.
            MPI_Datatype next;
            OK(MPI_Type_contiguous(2, MPI_DOUBLE, &next));
            OK(MPI_Send(&none, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
            OK(MPI_Type_free(&next));
        }
    });
}

namespace {

std::atomic<bool> handler_runs{false}, refused{false};

void handle_error(MPI_Win*, int*, ...) {
    handler_runs = true;
    wait_until(refused);
}

}  // namespace

MPI_CASE_OWN_INIT(threads_do_not_free_a_window_that_another_one_is_in, 1) {
    const Threaded mpi;
    MPI_Win win;
    int memory = 0, value = 0;
    OK(MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Errhandler handler;
    OK(MPI_Win_create_errhandler(handle_error, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    in_threads(2, [&](int thread) {
        if (thread == 0) {
            const MPI_Win mine = win;
            CHECK_EQ(error_class(MPI_Put(&value, 1, MPI_INT, 7, 0, 1, MPI_INT, mine)),
                     MPI_ERR_RANK);
        } else {
            wait_until(handler_runs);
            OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
            CHECK_EQ(error_class(MPI_Win_free(&win)), MPI_ERR_RMA_SYNC);
            refused = true;
        }
    });
    OK(MPI_Win_free(&win));
    OK(MPI_Errhandler_free(&handler));
}

}  // namespace mpi_tests

// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_PROGRESS=thread: long sends and receives that are left to the thread in the submission queue, beside
// all that goes the usual way. GANTRY_HAND_OVER=on, whether the thread has a processor or not.
#include "progress.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

using namespace mpi_tests;

// Long ones go by the submission queue, short ones with the same tag do not: they match in their order all
// the same, also when more are posted than the box holds.
MPI_CASE_OWN_INIT(progress_keeps_the_order_of_what_is_left_to_it, 2) {
    setenv("GANTRY_HAND_OVER", "on", 0);
    use_device(0);
    start_with_thread();
    constexpr int kMessages = 150, kLong = 96 << 10, kShort = 24;
    for (const Kind kind : {Kind::host, Kind::device}) {
        about(name(kind));
        std::deque<Memory> memories;
        std::vector<MPI_Request> requests(kMessages);
        std::vector<MPI_Status> statuses(kMessages);
        for (unsigned i = 0; i < kMessages; ++i)
            memories.emplace_back(kind, i % 3 == 1 ? kShort : kLong);
        for (unsigned round = 0; round < 3; ++round) {
            for (unsigned i = 0; i < kMessages; ++i)
                memories[i].fill(rank() == 0 ? 1000 * round + i : 99);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            for (unsigned i = 0; i < kMessages; ++i) {
                const int bytes = i % 3 == 1 ? kShort : kLong;
                if (rank() == 0 && i % 5 == 0)
                    OK(MPI_Issend(memories[i].data(), bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD,
                                  &requests[i]));
                else if (rank() == 0)
                    OK(MPI_Isend(memories[i].data(), bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD,
                                 &requests[i]));
                else
                    OK(MPI_Irecv(memories[i].data(), bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD,
                                 &requests[i]));
            }
            OK(MPI_Waitall(kMessages, requests.data(), statuses.data()));
            for (unsigned i = 0; i < kMessages && rank() == 1; ++i) {
                const int bytes = i % 3 == 1 ? kShort : kLong;
                CHECK_EQ(memories[i].differs(1000 * round + i, bytes), -1);
                int received = 0;
                OK(MPI_Get_count(&statuses[i], MPI_BYTE, &received));
                CHECK_EQ(received, bytes);
                CHECK_EQ(statuses[i].MPI_TAG, 4);
            }
        }
        about("");
    }
    finish();
}

// The computing rank's message is started, driven and ended by the thread alone.
MPI_CASE_OWN_INIT(progress_of_what_is_left_to_it, 2) {
    setenv("GANTRY_HAND_OVER", "on", 0);
    use_device(0);
    start_with_thread();
    the_sender_computes(Kind::device, Kind::device);
    the_receiver_computes(Kind::device, Kind::device);
    the_sender_computes(Kind::device, Kind::host);
    the_receiver_computes(Kind::host, Kind::device);
    finish();
}

// What has ended is taken where it lies; how often that was, endings_test.py looks up in the log.
MPI_CASE_OWN_INIT(progress_lets_calls_take_what_has_ended, 2) {
    setenv("GANTRY_HAND_OVER", "on", 0);
    start_with_thread();
    std::vector<char> out(1 << 20, static_cast<char>('a' + rank())), in(1 << 20);
    char word = 0;
    for (int round = 0; round < 10; ++round) {
        MPI_Request requests[3];
        OK(MPI_Irecv(in.data(), 1 << 20, MPI_CHAR, 1 - rank(), 0, MPI_COMM_WORLD, &requests[0]));
        requests[1] = MPI_REQUEST_NULL;
        OK(MPI_Isend(out.data(), 1 << 20, MPI_CHAR, 1 - rank(), 0, MPI_COMM_WORLD, &requests[2]));
        for (const int each : {0, 2})
            for (int ended = 0; ended == 0;)
                OK(MPI_Request_get_status(requests[each], &ended, MPI_STATUS_IGNORE));
        if (round % 2 == 0) {
            OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
        } else {
            OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
            OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
        }
        CHECK_EQ(in.front(), 'a' + 1 - rank());
        CHECK_EQ(in.back(), 'a' + 1 - rank());
        OK(MPI_Barrier(MPI_COMM_WORLD));
        std::fill(in.begin(), in.end(), '-');
    }
    // Beside an operation of the program's in the background everything goes the usual way.
    std::vector<char> space(1 << 16);
    OK(MPI_Buffer_attach(space.data(), static_cast<int>(space.size())));
    MPI_Comm other;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    for (int round = 0; round < 200; ++round) {
        MPI_Request request;
        if (rank() == 0) {
            OK(MPI_Isend(out.data(), 1 << 17, MPI_CHAR, 1, 0, other, &request));
            OK(MPI_Bsend(&word, 1, MPI_CHAR, 1, 1, other));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Irecv(in.data(), 1 << 17, MPI_CHAR, 0, 0, other, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Recv(&word, 1, MPI_CHAR, 0, 1, other, MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Comm_free(&other));
    void* where = nullptr;
    int bytes = 0;
    OK(MPI_Buffer_detach(&where, &bytes));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Request none = MPI_REQUEST_NULL;
    CHECK_EQ(error_class(MPI_Waitall(-1, &none, MPI_STATUSES_IGNORE)), MPI_ERR_COUNT);
    finish();
}

MPI_CASE_OWN_INIT(progress_tells_late_what_went_wrong_with_what_is_left_to_it, 2) {
    setenv("GANTRY_HAND_OVER", "on", 0);
    start_with_thread();
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    std::vector<char> buffer(1 << 20);
    MPI_Request request;
    if (rank() == 0) {
        OK(MPI_Isend(buffer.data(), 1 << 20, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        // Bad arguments are told at once, as ever.
        CHECK_EQ(error_class(
                     MPI_Isend(buffer.data(), 1 << 20, MPI_BYTE, 7, 0, MPI_COMM_WORLD, &request)),
                 MPI_ERR_RANK);
        CHECK_EQ(error_class(
                     MPI_Isend(buffer.data(), 1 << 20, MPI_BYTE, 1, -5, MPI_COMM_WORLD, &request)),
                 MPI_ERR_TAG);
        CHECK_EQ(error_class(MPI_Isend(nullptr, 1 << 20, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request)),
                 MPI_ERR_BUFFER);
        CHECK_EQ(error_class(MPI_Isend(buffer.data(), 1 << 20, MPI_DATATYPE_NULL, 1, 0,
                                       MPI_COMM_WORLD, &request)),
                 MPI_ERR_TYPE);
        CHECK_EQ(
            error_class(MPI_Isend(buffer.data(), 1 << 20, MPI_BYTE, 1, 0, MPI_COMM_NULL, &request)),
            MPI_ERR_COMM);
    } else {
        OK(MPI_Irecv(buffer.data(), 1 << 19, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request));
        CHECK_EQ(error_class(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
        CHECK(request == MPI_REQUEST_NULL);
        // Nothing comes for these.
        OK(MPI_Irecv(buffer.data(), 1 << 20, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
        const MPI_Request stale = request;
        MPI_Status status;
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        int cancelled = 0;
        OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK_EQ(cancelled, 1);
        request = stale;
        CHECK_EQ(error_class(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    }
    finish();
}

namespace {

constexpr int kLost = 1 << 20, kLostTag = 7, kEnded = 8;

// It may have failed before it met its message: then the sender waits for another receive.
void take_what_still_comes(std::vector<char>& host) {
    for (int ended = 0, there = 0; ended == 0;) {
        MPI_Message message;
        OK(MPI_Improbe(0, kLostTag, MPI_COMM_WORLD, &there, &message, MPI_STATUS_IGNORE));
        if (there != 0) OK(MPI_Mrecv(host.data(), kLost, MPI_CHAR, &message, MPI_STATUS_IGNORE));
        OK(MPI_Iprobe(0, kEnded, MPI_COMM_WORLD, &ended, MPI_STATUS_IGNORE));
    }
    OK(MPI_Recv(nullptr, 0, MPI_CHAR, 0, kEnded, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

}  // namespace

// The program resets a context under a message that it left to the thread, which looks at the buffer
// before that or after: a race. Either way the message ends, and nobody reads what is not there.
MPI_CASE_OWN_INIT(progress_meets_buffers_whose_context_was_reset, 2) {
    setenv("GANTRY_HAND_OVER", "on", 1);
    use_device(0);
    start_with_thread();
    if (!gpu().simulated) skip("resets a context that others of the machine may share");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    auto* reset = gpu().get<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2");
    std::vector<char> host(kLost);
    for (int round = 0; round < 20; ++round) {
        const int who = round % 2;
        about("rank " + std::to_string(who) + " resets");
        Memory memory(Kind::device, kLost);
        memory.fill(static_cast<unsigned>(round));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        MPI_Request request;
        if (rank() == 0)
            OK(MPI_Isend(memory.data(), kLost, MPI_CHAR, 1, kLostTag, MPI_COMM_WORLD, &request));
        else
            OK(MPI_Irecv(memory.data(), kLost, MPI_CHAR, 0, kLostTag, MPI_COMM_WORLD, &request));
        if (rank() == who) {
            CHECK_EQ(reset(0), CUDA_SUCCESS);
            memory.forget();
        }
        if (rank() == 1 && who == 0) {
            OK(MPI_Recv(nullptr, 0, MPI_CHAR, 0, kEnded, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Cancel(&request));
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank() == 0) OK(MPI_Send(nullptr, 0, MPI_CHAR, 1, kEnded, MPI_COMM_WORLD));
        if (rank() == 1 && who == 1) take_what_still_comes(host);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    about("");
    finish();
}

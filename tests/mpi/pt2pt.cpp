// SPDX-License-Identifier: BSD-3-Clause
//
// The semantics of point-to-point messages on host memory (MPI 5.0 chapter 3).
#include "test.hpp"

#include <numeric>
#include <vector>

using namespace mpi_tests;

MPI_CASE(messages_arrive_in_order, 2) {
    constexpr int kMessages = 2000;
    for (int i = 0; i < kMessages; ++i) {
        // Small and large ones take different paths and must not overtake each other.
        std::vector<int> data(i % 50 == 0 ? 40000u : 3u, i);
        if (rank() == 0) {
            OK(MPI_Send(data.data(), static_cast<int>(data.size()), MPI_INT, 1, 7, MPI_COMM_WORLD));
        } else {
            std::vector<int> got(data.size(), -1);
            OK(MPI_Recv(got.data(), static_cast<int>(got.size()), MPI_INT, 0, 7, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
            CHECK(got == data);
        }
    }
}

MPI_CASE(wildcards_say_what_came, 4) {
    if (rank() != 0) {
        OK(MPI_Send(MPI_BOTTOM, 0, MPI_INT, 0, 100 + rank(), MPI_COMM_WORLD));
        return;
    }
    int seen = 0;
    for (int i = 1; i < size(); ++i) {
        MPI_Status status;
        OK(MPI_Recv(nullptr, 0, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        CHECK_EQ(status.MPI_TAG, 100 + status.MPI_SOURCE);
        seen |= 1 << status.MPI_SOURCE;
    }
    CHECK_EQ(seen, 0b1110);
}

MPI_CASE(null_process, 1) {
    int value = 3;
    MPI_Status status;
    OK(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    int count = -1;
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    CHECK_EQ(status.MPI_TAG, MPI_ANY_TAG);
    CHECK_EQ(count, 0);
    CHECK_EQ(value, 3);
}

MPI_CASE(truncation_is_an_error_and_loses_nothing_else, 2) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int count : {4, 100000}) {
        std::vector<int> data(static_cast<std::size_t>(count), 6);
        if (rank() == 0) {
            OK(MPI_Send(data.data(), count, MPI_INT, 1, 0, MPI_COMM_WORLD));
            OK(MPI_Send(data.data(), count, MPI_INT, 1, 0, MPI_COMM_WORLD));
        } else {
            std::vector<int> got(static_cast<std::size_t>(count), 0);
            const int code =
                MPI_Recv(got.data(), count / 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQ(error_class(code), MPI_ERR_TRUNCATE);
            CHECK_EQ(got[static_cast<std::size_t>(count / 2)], 0);
            OK(MPI_Recv(got.data(), count, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(got == data);
        }
    }
}

MPI_CASE(synchronous_send_waits_for_its_receive, 2) {
    for (int count : {1, 100000}) {
        std::vector<char> data(static_cast<std::size_t>(count), 'x');
        if (rank() == 0) {
            MPI_Request request;
            OK(MPI_Issend(data.data(), count, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request));
            // Rank 1 receives only after this message, so the synchronous one cannot be done yet.
            int done = 1;
            for (int i = 0; i < 1000; ++i) {
                OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
                CHECK_EQ(done, 0);
                if (done) break;
            }
            OK(MPI_Send(nullptr, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(nullptr, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Recv(data.data(), count, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
}

MPI_CASE(sendrecv_around_a_ring, 4) {
    for (int count : {1, 1000, 300000}) {
        std::vector<int> out(static_cast<std::size_t>(count), rank()), in(out.size(), -1);
        const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
        MPI_Status status;
        OK(MPI_Sendrecv(out.data(), count, MPI_INT, right, 3, in.data(), count, MPI_INT, left, 3,
                        MPI_COMM_WORLD, &status));
        CHECK(in == std::vector<int>(out.size(), left));
        CHECK_EQ(status.MPI_SOURCE, left);
        OK(MPI_Sendrecv_replace(out.data(), count, MPI_INT, right, 4, left, 4, MPI_COMM_WORLD,
                                &status));
        CHECK(out == std::vector<int>(out.size(), left));
    }
}

MPI_CASE(probe_then_receive_what_was_seen, 2) {
    for (int count : {0, 5, 200000}) {
        if (rank() == 0) {
            std::vector<double> data(static_cast<std::size_t>(count), 2.5);
            OK(MPI_Send(data.data(), count, MPI_DOUBLE, 1, 11, MPI_COMM_WORLD));
        } else {
            MPI_Status status;
            int flag = 0;
            while (!flag)
                OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
            int seen = -1;
            OK(MPI_Get_count(&status, MPI_DOUBLE, &seen));
            CHECK_EQ(seen, count);
            CHECK_EQ(status.MPI_TAG, 11);
            std::vector<double> got(static_cast<std::size_t>(seen));
            OK(MPI_Recv(got.data(), seen, MPI_DOUBLE, status.MPI_SOURCE, status.MPI_TAG,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(got == std::vector<double>(got.size(), 2.5));
        }
    }
}

MPI_CASE(matched_probe_takes_the_message_out, 2) {
    if (rank() == 0) {
        for (int i = 0; i < 2; ++i)
            OK(MPI_Send(&i, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
        std::vector<int> large(100000, 42);
        OK(MPI_Send(large.data(), 100000, MPI_INT, 1, 0, MPI_COMM_WORLD));
        return;
    }
    MPI_Message first, second, third;
    MPI_Status status;
    OK(MPI_Mprobe(0, 0, MPI_COMM_WORLD, &first, &status));
    int value = -1;
    OK(MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(value, 1);
    OK(MPI_Mrecv(&value, 1, MPI_INT, &first, MPI_STATUS_IGNORE));
    CHECK_EQ(value, 0);
    CHECK(first == MPI_MESSAGE_NULL);
    OK(MPI_Mprobe(0, 0, MPI_COMM_WORLD, &third, &status));
    int flag = 1;
    OK(MPI_Improbe(0, 0, MPI_COMM_WORLD, &flag, &second, &status));
    CHECK_EQ(flag, 0);
    std::vector<int> large(100000);
    MPI_Request request;
    OK(MPI_Imrecv(large.data(), 100000, MPI_INT, &third, &request));
    OK(MPI_Wait(&request, &status));
    CHECK_EQ(large[99999], 42);
    OK(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &first, &status));
    CHECK(first == MPI_MESSAGE_NO_PROC);
    OK(MPI_Mrecv(&value, 1, MPI_INT, &first, &status));
    CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
}

MPI_CASE(wait_and_test_in_every_form, 2) {
    constexpr int kRequests = 6;
    int values[kRequests];
    MPI_Request requests[kRequests];
    MPI_Status statuses[kRequests];
    int indices[kRequests];
    if (rank() == 0) {
        MPI_Status status;
        OK(MPI_Recv(nullptr, 0, MPI_INT, 1, 99, MPI_COMM_WORLD, &status));
        for (int i = kRequests - 1; i >= 0; --i)
            OK(MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD));
        return;
    }
    for (int i = 0; i < kRequests; ++i)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]));
    int flag = 1, index = -1, outcount = -1;
    OK(MPI_Testall(kRequests, requests, &flag, MPI_STATUSES_IGNORE));
    CHECK_EQ(flag, 0);
    OK(MPI_Testany(kRequests, requests, &index, &flag, MPI_STATUS_IGNORE));
    CHECK_EQ(flag, 0);
    OK(MPI_Testsome(kRequests, requests, &outcount, indices, statuses));
    CHECK_EQ(outcount, 0);
    OK(MPI_Send(nullptr, 0, MPI_INT, 0, 99, MPI_COMM_WORLD));
    OK(MPI_Waitany(kRequests, requests, &index, &statuses[0]));
    CHECK(index >= 0 && index < kRequests);
    CHECK(requests[index] == MPI_REQUEST_NULL);
    CHECK_EQ(statuses[0].MPI_TAG, index);
    int done = 1;
    while (done < 3) {
        OK(MPI_Waitsome(kRequests, requests, &outcount, indices, statuses));
        for (int i = 0; i < outcount; ++i)
            CHECK_EQ(statuses[i].MPI_TAG, indices[i]);
        done += outcount;
    }
    OK(MPI_Waitall(kRequests, requests, statuses));
    for (int i = 0; i < kRequests; ++i)
        CHECK_EQ(values[i], i);
    OK(MPI_Waitany(kRequests, requests, &index, &statuses[0]));
    CHECK_EQ(index, MPI_UNDEFINED);
    OK(MPI_Waitsome(kRequests, requests, &outcount, indices, statuses));
    CHECK_EQ(outcount, MPI_UNDEFINED);
    MPI_Request null = MPI_REQUEST_NULL;
    statuses[0].MPI_ERROR = 12345;
    OK(MPI_Wait(&null, &statuses[0]));
    CHECK_EQ(statuses[0].MPI_SOURCE, MPI_ANY_SOURCE);
    CHECK_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);  // the empty status is all of it
    CHECK_EQ(statuses[0].MPI_TAG, MPI_ANY_TAG);
    statuses[0].MPI_ERROR = 12345;
    flag = 0;
    OK(MPI_Request_get_status(null, &flag, &statuses[0]));
    CHECK(flag == 1 && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE);
    CHECK_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
    int out = rank(), in = -1;
    OK(MPI_Isend(&out, 1, MPI_INT, rank(), 1, MPI_COMM_WORLD, &null));
    statuses[0].MPI_ERROR = 12345;
    OK(MPI_Recv(&in, 1, MPI_INT, rank(), 1, MPI_COMM_WORLD, &statuses[0]));
    CHECK_EQ(statuses[0].MPI_ERROR, 12345);  // that of one operation is left alone
    OK(MPI_Wait(&null, MPI_STATUS_IGNORE));
}

MPI_CASE(cancelled_receive, 2) {
    int value = 7;
    MPI_Request request;
    OK(MPI_Irecv(&value, 1, MPI_INT, 1 - rank(), 55, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    MPI_Status status;
    OK(MPI_Wait(&request, &status));
    int cancelled = 0;
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK_EQ(cancelled, 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));  // nobody sends before both have cancelled
    // The message that comes now goes to the next receive.
    int out = 9, in = 0;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank(), 55, &in, 1, MPI_INT, 1 - rank(), 55,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(in, 9);
    CHECK_EQ(value, 7);
}

namespace {

// Sends that nobody receives, of every kind that waits for its receiver; then the same again with a
// receive that is posted before.
void cancel_sends_to(int peer, int source) {
    for (const int count : {0, 1, 100000, 2000000})
        for (const bool persistent : {false, true})
            for (const bool received : {false, true}) {
                about(std::to_string(count) + " ints to " + std::to_string(peer));
                const auto n = static_cast<std::size_t>(count);
                std::vector<int> out(n, rank()), in(n, -1);
                MPI_Request send, receive = MPI_REQUEST_NULL;
                if (received)
                    OK(MPI_Irecv(in.data(), count, MPI_INT, source, 20, MPI_COMM_WORLD, &receive));
                OK(MPI_Barrier(MPI_COMM_WORLD));
                if (persistent) {
                    OK(MPI_Ssend_init(out.data(), count, MPI_INT, peer, 20, MPI_COMM_WORLD, &send));
                    OK(MPI_Start(&send));
                } else {
                    OK(MPI_Issend(out.data(), count, MPI_INT, peer, 20, MPI_COMM_WORLD, &send));
                }
                OK(MPI_Cancel(&send));
                MPI_Status status;
                OK(MPI_Wait(&send, &status));
                int cancelled = -1;
                OK(MPI_Test_cancelled(&status, &cancelled));
                CHECK_EQ(cancelled, received ? 0 : 1);
                if (persistent) OK(MPI_Request_free(&send));
                OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
                CHECK(!received || count == 0 || in.back() == source);
                OK(MPI_Barrier(MPI_COMM_WORLD));
                int left = -1;
                OK(MPI_Iprobe(MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &left, MPI_STATUS_IGNORE));
                CHECK_EQ(left, 0);
            }
    about("");
}

}  // namespace

MPI_CASE(cancelled_sends_end_when_nobody_receives_them, 2) {
    cancel_sends_to(1 - rank(), 1 - rank());
    cancel_sends_to(rank(), rank());
    // A matched probe has the message: it is not taken back.
    int value = 5, cancelled = -1;
    if (rank() == 0) {
        MPI_Request request;
        MPI_Status status;
        OK(MPI_Issend(&value, 1, MPI_INT, 1, 21, MPI_COMM_WORLD, &request));
        OK(MPI_Recv(nullptr, 0, MPI_INT, 1, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Cancel(&request));
        OK(MPI_Send(nullptr, 0, MPI_INT, 1, 23, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK_EQ(cancelled, 0);
    } else {
        MPI_Message message;
        int got = 0;
        OK(MPI_Mprobe(0, 21, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
        OK(MPI_Send(nullptr, 0, MPI_INT, 0, 22, MPI_COMM_WORLD));
        OK(MPI_Recv(nullptr, 0, MPI_INT, 0, 23, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        CHECK_EQ(got, 5);
    }
}

MPI_CASE(freed_requests_still_deliver, 2) {
    constexpr int kCount = 200000;
    std::vector<int> data(kCount, rank() + 5);
    MPI_Request request;
    if (rank() == 0) {
        OK(MPI_Isend(data.data(), kCount, MPI_INT, 1, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
        CHECK(request == MPI_REQUEST_NULL);
    } else {
        OK(MPI_Recv(data.data(), kCount, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(data[kCount - 1], 5);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

MPI_CASE(many_unexpected_messages, 2) {
    // More eager bytes than the eager credit: the sender must neither block for ever nor fill the
    // receiver's memory.
    constexpr int kMessages = 500, kCount = 4000;
    std::vector<int> data(kCount);
    if (rank() == 0) {
        std::vector<MPI_Request> requests(kMessages);
        std::vector<std::vector<int>> copies(kMessages, std::vector<int>(kCount));
        for (int i = 0; i < kMessages; ++i) {
            auto& copy = copies[static_cast<std::size_t>(i)];
            std::iota(copy.begin(), copy.end(), i);
            OK(MPI_Isend(copy.data(), kCount, MPI_INT, 1, i, MPI_COMM_WORLD,
                         &requests[static_cast<std::size_t>(i)]));
        }
        OK(MPI_Waitall(kMessages, requests.data(), MPI_STATUSES_IGNORE));
    } else {
        for (int i = kMessages - 1; i >= 0; --i) {
            OK(MPI_Recv(data.data(), kCount, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_EQ(data[0], i);
            CHECK_EQ(data[kCount - 1], i + kCount - 1);
        }
    }
}

MPI_CASE(more_than_two_gigabytes, 2) {
    constexpr MPI_Count kCount = (MPI_Count{1} << 31) + 12345;
    std::vector<char> data(static_cast<std::size_t>(kCount),
                           static_cast<char>(rank() == 0 ? 1 : 0));
    if (rank() == 0) {
        data.back() = 77;
        OK(MPI_Send_c(data.data(), kCount, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    } else {
        MPI_Status status;
        OK(MPI_Recv_c(data.data(), kCount, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &status));
        MPI_Count got = 0;
        OK(MPI_Get_count_c(&status, MPI_CHAR, &got));
        CHECK_EQ(got, kCount);
        int small = 0;
        OK(MPI_Get_count(&status, MPI_CHAR, &small));
        CHECK_EQ(small, MPI_UNDEFINED);
        CHECK_EQ(data.back(), 77);
        CHECK_EQ(data[static_cast<std::size_t>(kCount / 2)], 1);
    }
}

MPI_CASE(everybody_to_everybody, 8) {
    constexpr int kCount = 20000;
    std::vector<std::vector<int>> out, in;
    std::vector<MPI_Request> requests;
    for (int peer = 0; peer < size(); ++peer) {
        out.emplace_back(kCount, rank() * 100 + peer);
        in.emplace_back(kCount, -1);
    }
    for (int peer = 0; peer < size(); ++peer) {
        MPI_Request request;
        OK(MPI_Irecv(in[static_cast<std::size_t>(peer)].data(), kCount, MPI_INT, peer, 0,
                     MPI_COMM_WORLD, &request));
        requests.push_back(request);
        OK(MPI_Isend(out[static_cast<std::size_t>(peer)].data(), kCount, MPI_INT, peer, 0,
                     MPI_COMM_WORLD, &request));
        requests.push_back(request);
    }
    OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    for (int peer = 0; peer < size(); ++peer)
        CHECK(in[static_cast<std::size_t>(peer)] == std::vector<int>(kCount, peer * 100 + rank()));
}

// A message to oneself that no receive has is gone when MPI_Cancel returns, also one that nobody has
// looked for yet; and one that a receive has is not.
MPI_CASE(a_cancelled_message_to_oneself_is_known_to_be, 1) {
    std::vector<char> out(1 << 20), in(out.size());
    const auto after_cancel = [](MPI_Request& request) {
        OK(MPI_Cancel(&request));
        int done = 0, cancelled = 0;
        MPI_Status status;
        OK(MPI_Request_get_status(request, &done, &status));
        if (done != 0) OK(MPI_Test_cancelled(&status, &cancelled));
        return cancelled != 0;
    };
    for (const int bytes : {0, 5000, 1 << 20})
        for (const bool probed : {true, false}) {
            MPI_Request request, receive;
            OK(MPI_Issend(out.data(), bytes, MPI_BYTE, 0, 123, MPI_COMM_WORLD, &request));
            if (probed)
                OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(after_cancel(request));
            OK(MPI_Request_free(&request));
            int there = 1;
            OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
            CHECK_EQ(there, 0);
            OK(MPI_Irecv(in.data(), bytes, MPI_BYTE, 0, 123, MPI_COMM_WORLD, &receive));
            OK(MPI_Issend(out.data(), bytes, MPI_BYTE, 0, 123, MPI_COMM_WORLD, &request));
            CHECK(!after_cancel(request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        }
}

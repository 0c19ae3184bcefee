// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of device messages: a call that only posts takes a message that has come already
// (Messenger::look_for_one), so that a window's first copies do not wait for its last post.
#include "gpu.hpp"
#include "shared_word.hpp"
#include "test.hpp"

#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr int kCount = static_cast<int>(kBytes);

void send(Memory& memory, MPI_Request* request) {
    OK(MPI_Isend(memory.data(), kCount, MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD, request));
}
void receive(Memory& memory, MPI_Request* request) {
    OK(MPI_Irecv(memory.data(), kCount, MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD, request));
}
void wait(MPI_Request* request) {
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

// Until its receiver has mapped what that rank sends.
void learn(int sender, Memory& memory) {
    for (int i = 0; i < 64; ++i) {
        MPI_Request request;
        rank() == sender ? send(memory, &request) : receive(memory, &request);
        wait(&request);
    }
}

// Copies that rank 1 starts in a call, while a message of rank 0 has come and nobody has looked.
template <class Post>
std::uint64_t copies_of(SharedWord& word, unsigned turn, const Post& post) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    word.set(100 + turn);
    CHECK(word.compute_until(turn));
    const std::uint64_t before = calls().copies;
    post();
    return calls().copies - before;
}
void message_of_rank_0(SharedWord& word, unsigned turn, Memory& memory) {
    MPI_Request request;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(word.compute_until(100 + turn));
    send(memory, &request);
    word.set(turn);
    wait(&request);
}

}  // namespace

MPI_CASE_OWN_INIT(each_post_takes_one_message_that_has_come, 2) {
    setenv("GANTRY_LINGER", "0", 1);  // what a kernel that stays copies is no call
    setenv("GANTRY_SHM", "on", 1);
    start_mpi();
    if (!gpu().simulated) skip("a real GPU does not count calls");
    {
        Memory message(Kind::device, kBytes), answer(Kind::device, kBytes);
        learn(0, message);
        learn(1, answer);
        SharedWord word;
        if (rank() == 0) {
            MPI_Request answers[2];
            for (MPI_Request& each : answers)
                receive(answer, &each);
            message.fill(7);
            for (unsigned turn : {1u, 2u, 3u})
                message_of_rank_0(word, turn, message);
            OK(MPI_Waitall(2, answers, MPI_STATUSES_IGNORE));
        } else {
            MPI_Request received, answered, started;
            CHECK_EQ(copies_of(word, 1, [&] { receive(message, &received); }), 1u);
            wait(&received);

            OK(MPI_Recv_init(message.data(), kCount, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &started));
            CHECK_EQ(copies_of(word, 2, [&] { OK(MPI_Start(&started)); }), 1u);
            wait(&started);
            OK(MPI_Request_free(&started));

            const std::uint64_t before = calls().copies;
            send(answer, &answered);
            const std::uint64_t of_the_send = calls().copies - before;
            wait(&answered);
            receive(message, &received);
            CHECK_EQ(copies_of(word, 3, [&] { send(answer, &answered); }), of_the_send + 1);
            wait(&answered);
            wait(&received);
            CHECK_EQ(message.differs(7, kBytes), -1);
        }
    }
    MPI_Finalize();
}

// Sizes of all paths, receives posted before and behind the sends, some from any source, in an order
// of their own.
MPI_CASE(windows_of_both_ways_bring_what_was_sent, 2) {
    constexpr int kMessages = 48;
    const std::size_t sizes[] = {8, 1000, 65536, 300000};
    const Kind kinds[] = {Kind::device, Kind::device, Kind::host};
    for (unsigned round = 0; round < 4; ++round) {
        std::deque<Memory> out, in;
        std::vector<MPI_Request> requests;
        std::mt19937 random(round);  // both ranks alike
        std::vector<int> order;
        for (int i = 0; i < kMessages; ++i) {
            const std::size_t bytes = sizes[random() % 4];
            out.emplace_back(kinds[random() % 3], bytes).fill(100 * round + unsigned(i));
            in.emplace_back(kinds[random() % 3], bytes);
            order.insert(order.begin() + static_cast<long>(random() % (order.size() + 1)), i);
        }
        const auto receive_some = [&](int begin, int end) {
            for (int at = begin; at < end; ++at) {
                const int i = order[static_cast<std::size_t>(at)];
                Memory& memory = in[static_cast<std::size_t>(i)];
                OK(MPI_Irecv(memory.data(), static_cast<int>(memory.bytes()), MPI_BYTE,
                             i % 5 == 0 ? MPI_ANY_SOURCE : 1 - rank(), i, MPI_COMM_WORLD,
                             &requests.emplace_back()));
            }
        };
        receive_some(0, kMessages / 2);
        for (int i = 0; i < kMessages; ++i) {
            Memory& memory = out[static_cast<std::size_t>(i)];
            OK(MPI_Isend(memory.data(), static_cast<int>(memory.bytes()), MPI_BYTE, 1 - rank(), i,
                         MPI_COMM_WORLD, &requests.emplace_back()));
        }
        receive_some(kMessages / 2, kMessages);
        OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
        for (const MPI_Request& each : requests)
            CHECK(each == MPI_REQUEST_NULL);
        for (int i = 0; i < kMessages; ++i) {
            const Memory& memory = in[static_cast<std::size_t>(i)];
            CHECK_EQ(memory.differs(100 * round + unsigned(i), memory.bytes()), -1);
        }
    }
}

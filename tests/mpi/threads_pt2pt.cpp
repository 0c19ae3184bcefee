// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of several threads of a rank at once (MPI_THREAD_MULTIPLE).
#include "threads.hpp"

#include <numeric>

using namespace mpi_tests;

namespace {

// A round trip of each size, the message checked.
void ping_pong(MPI_Comm comm, int tag, int rounds) {
    const int peer = 1 - rank();
    for (int round = 0; round < rounds; ++round) {
        const std::size_t count = std::size_t{1} << (round % 17);
        const std::vector<int> sent = numbers(count, tag + round);
        std::vector<int> received(count);
        const int length = static_cast<int>(count);
        MPI_Status status;
        if (rank() == 0) {
            OK(MPI_Send(sent.data(), length, MPI_INT, peer, tag, comm));
            OK(MPI_Recv(received.data(), length, MPI_INT, peer, tag, comm, &status));
        } else {
            OK(MPI_Recv(received.data(), length, MPI_INT, peer, tag, comm, &status));
            OK(MPI_Send(sent.data(), length, MPI_INT, peer, tag, comm));
        }
        CHECK_EQ(status.MPI_TAG, tag);
        CHECK(received == sent);
    }
}

}  // namespace

MPI_CASE_OWN_INIT(threads_two_ping_pongs, 2) {
    const Threaded mpi;
    in_threads(2, [](int thread) { ping_pong(MPI_COMM_WORLD, thread, 200); });
}

MPI_CASE_OWN_INIT(threads_eight_ping_pongs, 2) {
    const Threaded mpi;
    in_threads(8, [](int thread) { ping_pong(MPI_COMM_WORLD, thread, 60); });
}

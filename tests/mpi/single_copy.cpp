// SPDX-License-Identifier: BSD-3-Clause
//
// Large host messages that the receiver reads out of the sender's memory, between real processes.
#include "test.hpp"
#include "tool.hpp"

#include <cstdlib>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr int kMessages = 3;

unsigned char byte_of(int from, int message, std::size_t at) {
    return static_cast<unsigned char>(at * 7 + at / 251 +
                                      static_cast<std::size_t>(13 * message + from));
}

// Each rank to the next one, whose receive comes before or after the message.
void around(std::size_t bytes) {
    const int next = (rank() + 1) % size(), last = (rank() + size() - 1) % size();
    std::vector<unsigned char> out(bytes), in(bytes + 1);
    for (int message = 0; message < kMessages; ++message) {
        for (std::size_t at = 0; at < bytes; ++at)
            out[at] = byte_of(rank(), message, at);
        MPI_Request requests[2];
        const auto receive = [&] {
            OK(MPI_Irecv(in.data(), static_cast<int>(bytes) + 1, MPI_BYTE, last, 1, MPI_COMM_WORLD,
                         &requests[1]));
        };
        if (message % 2 == 0) receive();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK((message == 1 ? MPI_Issend : MPI_Isend)(out.data(), static_cast<int>(bytes), MPI_BYTE,
                                                   next, 1, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (message % 2 == 1) receive();
        MPI_Status status;
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        for (std::size_t at = 0; at < bytes; ++at)
            out[at] = 0xee;  // whoever reads it now reads too late
        OK(MPI_Wait(&requests[1], &status));
        int count = 0;
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_EQ(static_cast<std::size_t>(count), bytes);
        std::size_t wrong = 0;
        for (std::size_t at = 0; at < bytes; ++at)
            wrong += in[at] != byte_of(last, message, at) ? 1 : 0;
        CHECK_EQ(wrong, 0u);
    }
}

}  // namespace

MPI_CASE_OWN_INIT(large_host_messages_are_read_by_their_receiver, 3) {
    setenv("GANTRY_CMA_THRESHOLD", "64K", 1);
    start_mpi();
    const Tool tool;
    Counted read(tool, "messages_received_cma"), bytes(tool, "bytes_received_cma");
    tool.start_all();
    for (const std::size_t size : {100001u, 1048576u, 3000001u})
        around(size);
    // Where the system lets no process look into another one they all go through slots.
    const auto reads = static_cast<int>(read.read());
    int least = 0, most = 0;
    OK(MPI_Allreduce(&reads, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&reads, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK_EQ(least, most);
    CHECK_EQ(reads == 0 || reads == 3 * kMessages, true);
    if (reads == 0) skip("a process may not read another one's memory here");
    CHECK_EQ(bytes.read(), kMessages * (100001ull + 1048576 + 3000001));
    MPI_Finalize();
}

// Whichever way they find faster: what comes out is the same.
MPI_CASE_OWN_INIT(large_host_messages_that_measure_both_ways_arrive_whole, 3) {
    unsetenv("GANTRY_CMA_THRESHOLD");
    setenv("GANTRY_MECHANISMS", "all", 1);
    start_mpi();
    for (int round = 0; round < 3; ++round)
        around(524289);
    MPI_Finalize();
}

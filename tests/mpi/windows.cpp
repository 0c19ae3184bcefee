// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of messages in both directions: right data whatever comes first.
#include "gpu.hpp"
#include "test.hpp"

#include <deque>
#include <random>
#include <vector>

using namespace mpi_tests;

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

// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of messages in both directions: right data whatever comes first.
#include "gpu.hpp"
#include "test.hpp"

#include <cstdlib>
#include <cstring>
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

// Of one allocation for each direction, which the other process maps: small ones share kernels, larger
// ones calls of the driver.
MPI_CASE(large_windows_between_two_gpus_bring_what_was_sent, 2) {
    if (gpu().count < 2) skip("one GPU only");
    constexpr int kMessages = 16, kRounds = 20, kRoom = 1 << 21;
    const int sizes[] = {100000, 300000, 1 << 20, kRoom, 8};
    const int other = 1 - rank();
    Memory out(Kind::device, std::size_t{kMessages} * kRoom, rank());
    Memory in(Kind::device, std::size_t{kMessages} * kRoom, rank());
    std::vector<std::byte> got(in.bytes());
    if (gpu().simulated) reset_calls();
    for (int round = 0; round < kRounds; ++round) {
        const auto seed = [round](int of) { return unsigned(2 * round + of); };
        out.fill(seed(rank()));
        std::mt19937 random(7);
        std::vector<int> bytes(kMessages, sizes[round / 4]);  // windows of one size, then of all
        for (int& each : bytes)
            if (round / 4 == 4) each = sizes[random() % 5];
        std::vector<MPI_Request> requests;
        for (int i = 0; i < kMessages; ++i)
            OK(MPI_Irecv(in.data() + std::size_t(i) * kRoom, bytes[std::size_t(i)], MPI_BYTE, other,
                         i, MPI_COMM_WORLD, &requests.emplace_back()));
        for (int i = 0; i < kMessages; ++i)
            OK(MPI_Isend(out.data() + std::size_t(i) * kRoom, bytes[std::size_t(i)], MPI_BYTE,
                         other, i, MPI_COMM_WORLD, &requests.emplace_back()));
        OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
        in.read(got.data(), got.size());
        for (int i = 0; i < kMessages; ++i)
            for (std::size_t at = std::size_t(i) * kRoom, end = at + bytes[std::size_t(i)];
                 at < end; ++at)
                if (got[at] != pattern(seed(other), at)) {
                    CHECK_EQ(at, end);
                    break;
                }
    }
    const char* shared_memory = std::getenv("GANTRY_SHM");  // off: over a network all is staged
    if (gpu().simulated && (shared_memory == nullptr || std::strcmp(shared_memory, "off") != 0))
        CHECK(calls("cuMemcpyBatchAsync") > 0);
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Threads with buffers in device memory. A thread that never chose a device drives messages of one
// that did.
#include "gpu.hpp"
#include "threads.hpp"

using namespace mpi_tests;

namespace {

constexpr std::size_t kSizes[] = {8, 5000, 200'000, 3'000'000};

void exchange(int thread, Kind mine, Kind theirs) {
    use_device(0);
    const int peer = 1 - rank();
    for (const std::size_t bytes : kSizes) {
        Memory sent(mine, bytes), received(theirs, bytes);
        const int length = static_cast<int>(bytes);
        for (unsigned round = 1; round <= 3; ++round) {
            const unsigned seed = round + 10 * static_cast<unsigned>(thread);
            sent.fill(seed);
            received.fill(99);
            MPI_Request requests[2];
            OK(MPI_Irecv(received.data(), length, MPI_BYTE, peer, thread, MPI_COMM_WORLD,
                         &requests[0]));
            OK(MPI_Isend(sent.data(), length, MPI_BYTE, peer, thread, MPI_COMM_WORLD,
                         &requests[1]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            CHECK_EQ(received.differs(seed, bytes), -1);
        }
    }
}

}  // namespace

MPI_CASE_OWN_INIT(threads_send_device_buffers, 2) {
    use_device(0);
    const Threaded mpi;
    in_threads(2, [](int thread) { exchange(thread, Kind::device, Kind::device); });
}

MPI_CASE_OWN_INIT(threads_send_buffers_of_every_kind, 2) {
    use_device(0);
    const Threaded mpi;
    const Kind kinds[] = {Kind::device, Kind::host, Kind::pinned, Kind::managed};
    in_threads(4, [&](int thread) { exchange(thread, kinds[thread], kinds[(thread + 1) % 4]); });
}

MPI_CASE_OWN_INIT(threads_reduce_in_device_memory, 2) {
    use_device(0);
    const Threaded mpi;
    MPI_Comm comms[2];
    for (MPI_Comm& comm : comms)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    in_threads(2, [&](int thread) {
        use_device(0);
        constexpr std::size_t kCount = 20'000;
        Memory in(Kind::device, kCount * sizeof(int)), out(Kind::device, kCount * sizeof(int));
        const std::vector<int> mine = numbers(kCount, 1000 * thread + rank());
        std::vector<int> sum(kCount);
        in.write(mine.data(), kCount * sizeof(int));
        for (int round = 0; round < 5; ++round) {
            OK(MPI_Allreduce(in.data(), out.data(), static_cast<int>(kCount), MPI_INT, MPI_SUM,
                             comms[thread]));
            out.read(sum.data(), kCount * sizeof(int));
            for (std::size_t i = 0; i < kCount; i += 997)
                CHECK_EQ(sum[i], 2 * (1000 * thread + static_cast<int>(i)) + 1);
        }
    });
    for (MPI_Comm& comm : comms)
        OK(MPI_Comm_free(&comm));
}

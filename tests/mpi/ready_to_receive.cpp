// SPDX-License-Identifier: BSD-3-Clause
//
// Puts after a ready-to-receive (RTR) between two GPUs (p2p/protocols/put_after_rtr.cpp) of real
// processes: the end of large ones is told by a flag that the device raises in the sender's segment, smaller ones by the sender.
#include "gpu.hpp"
#include "machine_file.hpp"
#include "test.hpp"

#include <sched.h>

#include <cstdlib>
#include <vector>

using namespace mpi_tests;

namespace {

// The receiver waits in MPI_Recv, most times, when the sender begins.
void one_way(int from, Memory& out, Memory& in, int bytes) {
    const int peer = 1 - rank();
    if (rank() == from) {
        OK(MPI_Recv(nullptr, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int look = 0, found = 0; look < 10; ++look) {
            sched_yield();
            OK(MPI_Iprobe(peer, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
        }
        OK(MPI_Send(out.data(), bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Send(nullptr, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD));
        OK(MPI_Recv(in.data(), bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

// To and fro until mappings for puts have repaid themselves; then with bytes that are checked.
void ping_pong(std::size_t bytes) {
    constexpr int kLearn = 100;
    constexpr unsigned kChecked = 100;
    const int count = static_cast<int>(bytes);
    Memory out(Kind::device, bytes, rank()), in(Kind::device, bytes, rank());
    for (int i = 0; i < 2 * kLearn; ++i)
        one_way(i % 2, out, in, count);
    if (gpu().simulated) reset_calls();
    for (unsigned round = 0; round < kChecked; ++round) {
        out.fill(2 * round + static_cast<unsigned>(rank()));
        for (int from : {0, 1})
            one_way(from, out, in, count);
        CHECK_EQ(in.differs(2 * round + static_cast<unsigned>(1 - rank()), bytes), -1);
    }
}

// Both ways at once; what arrives is checked every thirtieth time.
void exchange(std::size_t bytes) {
    constexpr unsigned kRounds = 600;
    const int count = static_cast<int>(bytes), peer = 1 - rank();
    Memory out(Kind::device, bytes, rank()), in(Kind::device, bytes, rank());
    for (unsigned round = 0; round < kRounds; ++round) {
        const bool checked = round % 30 == 0;
        if (checked) out.fill(2 * round + static_cast<unsigned>(rank()));
        MPI_Status status;
        OK(MPI_Sendrecv(out.data(), count, MPI_BYTE, peer, 3, in.data(), count, MPI_BYTE, peer, 3,
                        MPI_COMM_WORLD, &status));
        CHECK_EQ(status.MPI_SOURCE, peer);
        if (checked) CHECK_EQ(in.differs(2 * round + static_cast<unsigned>(peer), bytes), -1);
    }
}

// Mappings that cost little repay themselves after a few messages.
MachineFile cheap_mappings() {
    return {R"("latency_ns": 8300, "gap_ns": 1800, "bytes_per_second": 3e11)",
            R"("copy_ns": 1200, "launch_ns": 3000, "event_record_ns": 210, "event_query_ns": 1350,
               "event_query_vain_ns": 200, "write_value_ns": 3900, "event_seen_ns": 2700,
               "d2d_event_seen_ns": 4300, "host_event_seen_ns": 4600, "ipc_open_ns": 20000,
               "ipc_open_peer_ns": 20000, "ipc_pair_ns": 0)"};
}

void start_without_persistent_kernels() {
    setenv("GANTRY_IDLE_TIMEOUT", "0", 1);
    setenv("GANTRY_SHM", "on", 1);  // over a network no RTR is sent
    start_mpi();
    if (gpu().count < 2) skip("one GPU");
}

}  // namespace

MPI_CASE_OWN_INIT(large_puts_after_rtr_are_told_by_the_device, 2) {
    const MachineFile machine = cheap_mappings();
    start_without_persistent_kernels();
    ping_pong(768 << 10);
    if (gpu().simulated) CHECK(calls("cuStreamWriteValue32_v2") > 0);
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(smaller_puts_after_rtr_are_told_by_their_sender, 2) {
    const MachineFile machine = cheap_mappings();
    start_without_persistent_kernels();
    ping_pong(256 << 10);
    if (gpu().simulated) CHECK_EQ(calls("cuStreamWriteValue32_v2"), 0u);
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(an_exchange_is_put_both_ways, 2) {
    const MachineFile machine = cheap_mappings();
    start_without_persistent_kernels();
    exchange(768 << 10);
    // A get's end is asked for: only a put has a flag behind it.
    if (gpu().simulated) CHECK(calls("cuStreamWriteValue32_v2") > 0);
    MPI_Finalize();
}

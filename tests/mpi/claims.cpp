// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver copies itself when the sender that was told to put computes and calls no MPI. The
// machine says that GPUs read each other's memory more slowly than they write it, as over PCIe.
#include "gpu.hpp"
#include "shared_word.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

using namespace mpi_tests;

namespace {

constexpr int kBytes = 4 << 20;

std::string machine_with_slow_gets() {
    const std::string name = std::string(P_tmpdir) + "/gantry-slow-gets-" +
                             std::to_string(getppid()) + "-" + std::to_string(getpid()) + ".json";
    std::ofstream(name) << R"({"name": "slow gets", "peer_access": true, "ipc": true, "gpu": {
        "name": "GPU", "d2h": {"latency_ns": 7000, "gap_ns": 3500, "bytes_per_second": 5e10},
        "h2d": {"latency_ns": 7000, "gap_ns": 3500, "bytes_per_second": 5e10},
        "d2d": {"latency_ns": 8000, "gap_ns": 3500, "bytes_per_second": 2e12},
        "peer": {"latency_ns": 7000, "gap_ns": 1800, "bytes_per_second": 3e11},
        "peer_get": {"latency_ns": 7000, "gap_ns": 1800, "bytes_per_second": 1e11},
        "pageable_d2h": {"latency_ns": 9000, "gap_ns": 5000, "bytes_per_second": 1e10},
        "pageable_h2d": {"latency_ns": 9000, "gap_ns": 5000, "bytes_per_second": 1e10},
        "calls": {"ipc_open_ns": 100000}}})";
    return name;
}

}  // namespace

MPI_CASE_OWN_INIT(claims_by_the_receiver_of_a_sender_that_computes, 2) {
    if (gpu().count < 2) skip("there is one GPU only");
    const std::string machine = machine_with_slow_gets();
    setenv("GANTRY_MACHINE", machine.c_str(), 1);
    setenv("GANTRY_PROGRESS", "calls", 1);
    start_mpi();
    use_device(rank());
    {
        Memory memory(Kind::device, kBytes, rank());
        for (int i = 0; i < 64; ++i) {
            if (rank() == 0)
                OK(MPI_Ssend(memory.data(), kBytes, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
            else
                OK(MPI_Recv(memory.data(), kBytes, MPI_BYTE, 0, 9, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        }
        SharedWord word;
        for (unsigned round = 1; round <= 8; ++round) {
            memory.fill(rank() == 0 ? round : 99);
            if (rank() == 0) {
                MPI_Request request;
                OK(MPI_Isend(memory.data(), kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
                CHECK(word.compute_until(round));
                memory.fill(77);  // read by nobody any more
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Recv(memory.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
                CHECK_EQ(memory.differs(round, kBytes), -1);
                word.set(round);
            }
            OK(MPI_Barrier(MPI_COMM_WORLD));
            if (rank() == 1) CHECK_EQ(memory.differs(round, kBytes), -1);
        }
    }
    unlink(machine.c_str());
    MPI_Finalize();
}

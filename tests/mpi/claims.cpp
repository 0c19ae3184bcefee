// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver copies itself when the sender that was told to put computes and calls no MPI. The
// machine says that GPUs read each other's memory more slowly than they write it, as over PCIe.
#include "gpu.hpp"
#include "machine_file.hpp"
#include "shared_word.hpp"

#include <cstdlib>

using namespace mpi_tests;

namespace {

constexpr int kBytes = 4 << 20;

}  // namespace

MPI_CASE_OWN_INIT(claims_by_the_receiver_of_a_sender_that_computes, 2) {
    if (gpu().count < 2) skip("there is one GPU only");
    const MachineFile machine(R"("latency_ns": 7000, "gap_ns": 1800, "bytes_per_second": 1e11)",
                              R"("ipc_open_ns": 100000)");
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
    MPI_Finalize();
}

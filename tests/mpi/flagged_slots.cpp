// SPDX-License-Identifier: BSD-3-Clause
//
// A staged message of one piece is told by the copy engine: it reaches its receiver while the sender
// computes and calls no MPI. (Copies of a persistent kernel are told by the sender: none stays here.)
#include "gpu.hpp"
#include "shared_word.hpp"

#include <cstdlib>

using namespace mpi_tests;

namespace {

constexpr int kBytes = 64 << 10;

}  // namespace

MPI_CASE_OWN_INIT(flagged_slots_reach_a_receiver_whose_sender_computes, 2) {
    if (gpu().count < 1) skip("there is no GPU");
    setenv("GANTRY_IPC", "off", 1);
    setenv("GANTRY_IDLE_TIMEOUT", "0", 1);
    setenv("GANTRY_PROGRESS", "calls", 1);
    start_mpi();
    use_device(rank() % gpu().count);
    {
        Memory memory(Kind::device, kBytes, rank() % gpu().count);
        SharedWord word;
        for (unsigned round = 1; round <= 50; ++round) {
            memory.fill(rank() == 0 ? round : 99);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            if (rank() == 0) {
                MPI_Request request;
                OK(MPI_Isend(memory.data(), kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
                // The first one finds the flags not page-locked yet.
                if (round > 1) CHECK(word.compute_until(round));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Recv(memory.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
                CHECK_EQ(memory.differs(round, kBytes), -1);
                word.set(round);
            }
        }
    }
    MPI_Finalize();
}

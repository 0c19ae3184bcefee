// SPDX-License-Identifier: BSD-3-Clause
//
// What the cases of the progress thread have in common (progress.cpp, submission_queue.cpp).
#pragma once

#include "gpu.hpp"
#include "shared_word.hpp"
#include "test.hpp"

#include <dirent.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace mpi_tests {

inline constexpr int kLarge = 4 << 20;

inline void start_with_thread() {
    setenv("GANTRY_PROGRESS", "thread", 0);
    start_mpi();
}

// Mappings are opened when messages have paid for them; later ones take the path of the long run.
inline void warm_up(Memory& memory) {
    for (int i = 0; i < 64; ++i) {
        if (rank() == 0)
            OK(MPI_Send(memory.data(), kLarge, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(memory.data(), kLarge, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

// Rank 0 starts to send and computes until rank 1 has received all.
inline void the_sender_computes(Kind source, Kind sink) {
    about(std::string(name(source)) + " to " + name(sink));
    Memory memory(rank() == 0 ? source : sink, kLarge);
    warm_up(memory);
    SharedWord word;
    for (unsigned round = 1; round <= 4; ++round) {
        memory.fill(rank() == 0 ? round : 99);
        if (rank() == 0) {
            MPI_Request request;
            OK(MPI_Isend(memory.data(), kLarge, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
            CHECK(word.compute_until(round));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(memory.data(), kLarge, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_EQ(memory.differs(round, kLarge), -1);
            word.set(round);
        }
    }
    about("");
}

// Rank 1 posts its receive and computes until rank 0's send is over. Synchronous: a send of bytes
// that were all copied ahead would end without it.
inline void the_receiver_computes(Kind source, Kind sink) {
    about(std::string(name(source)) + " to computing " + name(sink));
    Memory memory(rank() == 0 ? source : sink, kLarge);
    warm_up(memory);
    SharedWord word;
    for (unsigned round = 1; round <= 4; ++round) {
        memory.fill(rank() == 0 ? round : 99);
        if (rank() == 0) {
            OK(MPI_Ssend(memory.data(), kLarge, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
            word.set(round);
        } else {
            MPI_Request request;
            OK(MPI_Irecv(memory.data(), kLarge, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request));
            CHECK(word.compute_until(round));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK_EQ(memory.differs(round, kLarge), -1);
        }
    }
    about("");
}

// Ids of the threads that Gantry made.
inline std::vector<std::string> progress_threads() {
    std::vector<std::string> found;
    DIR* tasks = opendir("/proc/self/task");
    while (const dirent* entry = readdir(tasks)) {
        std::ifstream comm(std::string("/proc/self/task/") + entry->d_name + "/comm");
        std::string line;
        if (std::getline(comm, line) && line == "gantry-progress") found.push_back(entry->d_name);
    }
    closedir(tasks);
    return found;
}

// The kernel shows a thread that was joined for a moment more: only the time limit of the test ends this.
inline void wait_for_the_end_of_threads() {
    while (!progress_threads().empty())
        sched_yield();
}

inline void finish() {
    OK(MPI_Finalize());
    wait_for_the_end_of_threads();
}

}  // namespace mpi_tests

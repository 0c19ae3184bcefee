// SPDX-License-Identifier: BSD-3-Clause
//
// Locks of windows among real processes: who waits has a turn, and exclusive means that.
#include "rma.hpp"
#include "tests/sanitized.hpp"

using namespace mpi_tests;

// Rank 0 looks at its own window until rank 1 has written there, which needs the lock for it.
MPI_CASE(rma_locks_come_to_others_while_a_rank_polls_its_own_window, 2) {
    for (const Kind kind : {Kind::host, Kind::device})
        for (const int lock : {MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED}) {
            Window window(Window::Made::create, 64, kind);
            window.set(0, 0);
            Memory seen(kind, 64);
            const int written = 77;
            OK(MPI_Barrier(MPI_COMM_WORLD));
            if (rank() == 0) {
                for (int found = 0; found != written;) {
                    OK(MPI_Win_lock(lock, 0, 0, window.win()));
                    OK(MPI_Get(seen.data(), 1, MPI_INT, 0, 0, 1, MPI_INT, window.win()));
                    OK(MPI_Win_unlock(0, window.win()));
                    seen.read(&found, sizeof found);
                }
            } else {
                OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win()));
                OK(MPI_Put(&written, 1, MPI_INT, 0, 0, 1, MPI_INT, window.win()));
                OK(MPI_Win_unlock(0, window.win()));
            }
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
}

// Each adds one to a number again and again by reading and writing it, which is right where nobody else
// has the lock; between these it reads with a shared one, of all ranks at times.
MPI_CASE(rma_exclusive_locks_exclude_and_come_to_everybody, 4) {
    for (const Window::Made how : {Window::Made::create, Window::Made::allocate}) {
        Window window(how, 64);
        window.set(0, 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        const int rounds = gantry::repetitions(60);
        for (int round = 0; round < rounds; ++round) {
            int number = -1;
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win()));
            OK(MPI_Get(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, window.win()));
            OK(MPI_Win_flush(0, window.win()));
            const int next = number + 1;
            OK(MPI_Put(&next, 1, MPI_INT, 0, 0, 1, MPI_INT, window.win()));
            OK(MPI_Win_unlock(0, window.win()));
            int seen = -1;
            const bool all = (round + rank()) % 3 == 0;
            OK(all ? MPI_Win_lock_all(0, window.win())
                   : MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win()));
            OK(MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, window.win()));
            OK(all ? MPI_Win_unlock_all(window.win()) : MPI_Win_unlock(0, window.win()));
            CHECK(seen >= next);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank() == 0) CHECK_EQ(window.value<int>(0), 4 * rounds);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

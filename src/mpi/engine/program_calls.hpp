// SPDX-License-Identifier: BSD-3-Clause
//
// Calls the functions of the program that collectives wait for (base/program_call.hpp), with the lock
// open: such a function may wait for what another thread holds that stands waiting for the lock. Calls of MPI
// that wait or test come here, and no others: a thread may hold what the function needs while it asks
// for the size of a communicator. Below MPI_THREAD_MULTIPLE and without a progress thread nothing ever
// waits, since coroutines call such functions themselves.
#pragma once

#include "base/executor.hpp"

namespace gantry::mpi {

// Whether the calling thread is in a function of the program that was called here.
bool in_program_call();

// Whether the calling thread, which holds the lock, has some to make. A function of the program
// that calls MPI makes none there: it would be called again inside itself.
inline bool program_calls_due(const Executor& executor) {
    return executor.has_program_work() && !in_program_call();
}

// Makes all of them.
void make_program_calls(Executor& executor);

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// Making an inter-communicator with processes that are not in a communicator with these yet.
#pragma once

#include "mpi/comm/comm.hpp"
#include "mpi/dynamic/bridge.hpp"

#include <memory>
#include <string>

namespace gantry::mpi {

// All of `comm` call it; the root, number `root`, has a bridge to the other root, or the reason why not.
struct Introduction {
    Comm* comm = nullptr;
    coll::Team team;  // of the operation
    int root = 0;
};
Task<Status> introduce(Executor& executor, Introduction who, Bridge* bridge, Status judged,
                       MPI_Comm* newcomm);

// Of a job that was spawned: all of its ranks connect to their parents, by which MPI_Comm_get_parent
// answers from now on. Of others: nothing.
Task<Status> connect_to_parents(Executor& executor, Engine& engine);

}  // namespace gantry::mpi

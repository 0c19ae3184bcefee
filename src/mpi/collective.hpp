// SPDX-License-Identifier: BSD-3-Clause
//
// How a started collective becomes a blocking or a nonblocking call.
#pragma once

#include "base/task.hpp"
#include "mpi/comm.hpp"
#include "mpi/pending.hpp"

namespace gantry::mpi {

Pending blocking(Comm& comm, Result<Task<Status>> task);
Status nonblocking(Comm& comm, Result<Task<Status>> task, MPI_Request* request, Datatype* first = nullptr,
                   Datatype* second = nullptr);

}  // namespace gantry::mpi

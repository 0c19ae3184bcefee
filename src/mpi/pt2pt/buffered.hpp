// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends (MPI 5.0 section 3.6). The program says how many bytes may be held, by attaching a
// buffer to the process, a session or a communicator; the data itself is copied to memory of our
// own, so that messages of any size may come and go in any order.
#pragma once

#include "base/task.hpp"
#include "mpi/comm/comm.hpp"

namespace gantry::mpi {

// Starts a buffered send. The request is complete when the data is copied and its message queued:
// at once for host memory, soon for device memory. A call that posts sends waits for that, so that
// no later message gets ahead (MPI 5.0 section 3.5).
Result<p2p::Request*> start_buffered(Comm& comm, const p2p::Buffer& data, int dest, int tag);

}  // namespace gantry::mpi

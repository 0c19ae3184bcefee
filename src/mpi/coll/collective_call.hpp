// SPDX-License-Identifier: BSD-3-Clause
//
// CollectiveCall: a collective operation with its arguments, as the one body of an operation
// returns it. The generated entry points make of it what was called:
//
//     mpi::wait(mpi::blocking(comm, mpi::bcast(...)))         MPI_Bcast
//     mpi::nonblocking(comm, mpi::bcast(...), request)        MPI_Ibcast
//     mpi::persistent(comm, mpi::bcast(...), request)         MPI_Bcast_init
//
// Arrays of the program are copied by the body, since only the blocking call lasts until the
// operation ends.
#pragma once

#include "base/task.hpp"
#include "mpi/check/agreement.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/pending.hpp"

#include <vector>

namespace gantry::mpi {

struct CollectiveCall {
    StartCollective start;
    // Datatypes that must live as long as a request for the operation; null ones do not count.
    Datatype* types[2] = {};
    std::vector<Datatype*> types_of_blocks = {};  // where each rank's block has a type of its own
    Agreement agreement = {};                     // what the ranks compare before it
};

// A call that is refused for its arguments takes no tag, wherever it is refused: it is as if it had not
// been made, and the program may make it again.
Pending blocking(Comm& comm, const Result<CollectiveCall>& call);
Status nonblocking(Comm& comm, const Result<CollectiveCall>& call, MPI_Request* request);
// The tag is fixed now: persistent collectives may be started in another order on each rank.
Status persistent(Comm& comm, const Result<CollectiveCall>& call, MPI_Request* request);

}  // namespace gantry::mpi

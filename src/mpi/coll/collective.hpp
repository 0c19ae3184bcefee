// SPDX-License-Identifier: BSD-3-Clause
//
// One description of a collective operation serves its blocking, its nonblocking and its persistent
// call: a Plan makes the task for a given team (with the tag of that operation) as often as it is
// asked.
#pragma once

#include "base/task.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/pending.hpp"

#include <functional>
#include <vector>

namespace gantry::mpi {

using Plan = std::function<Task<Status>(coll::Team)>;
using Types =
    std::vector<Datatype*>;  // those that must live as long as the request; null ones do not count

Pending blocking(Comm& comm, const Result<Plan>& plan);
Status nonblocking(Comm& comm, const Result<Plan>& plan, const Types& types, MPI_Request* request);
// Its tag is fixed now: persistent collectives may be started in another order on each rank.
Status persistent(Comm& comm, const Result<Plan>& plan, const Types& types, MPI_Request* request);

}  // namespace gantry::mpi

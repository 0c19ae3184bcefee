// SPDX-License-Identifier: BSD-3-Clause
//
// The three forms of a collective call.
#include "mpi/coll/collective.hpp"

#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

namespace gantry::mpi {

Pending blocking(Comm& comm, const Result<Plan>& plan) {
    if (!plan.ok()) return Status(plan.status());
    return Pending(*comm.engine, plan.value()(comm.team()));
}

Status nonblocking(Comm& comm, const Result<Plan>& plan, const Types& types, MPI_Request* request) {
    if (!plan.ok()) return plan.status();
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> started = requests.spawn(plan.value()(comm.background_team()));
    if (!started.ok()) return std::move(started).status();
    *request = requests.hand_out(*started, comm);
    for (Datatype* type : types)
        if (type != nullptr) requests.keep(*request, *type);
    return success();
}

Status persistent(Comm& comm, const Result<Plan>& plan, const Types& types, MPI_Request* request) {
    if (!plan.ok()) return plan.status();
    Requests& requests = comm.engine->requests();
    const coll::Team team = comm.background_team();
    Result<p2p::Request*> made = requests.persistent(
        comm, [&requests, team, make = plan.value()] { return requests.spawn(make(team)); });
    if (!made.ok()) return std::move(made).status();
    *request = reinterpret_cast<MPI_Request>(*made);
    for (Datatype* type : types)
        if (type != nullptr) requests.keep(*request, *type);
    return success();
}

}  // namespace gantry::mpi

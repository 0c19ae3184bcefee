// SPDX-License-Identifier: BSD-3-Clause
//
// The three forms of a collective call.
#include "mpi/coll/collective_call.hpp"

#include "mpi/engine/engine.hpp"

namespace gantry::mpi {
namespace {

void keep_types(Requests& requests, const CollectiveCall& call, MPI_Request request) {
    for (Datatype* type : call.types)
        if (type != nullptr) requests.keep(request, *type);
    for (Datatype* type : call.types_of_blocks)
        if (type != nullptr) requests.keep(request, *type);
}

}  // namespace

Pending blocking(Comm& comm, const Result<CollectiveCall>& call) {
    const coll::Team team = comm.team();
    if (!call.ok()) return Status(call.status());
    return Pending(*comm.engine, call.value().start(team));
}

Status nonblocking(Comm& comm, const Result<CollectiveCall>& call, MPI_Request* request) {
    const coll::Team team = comm.background_team();
    if (!call.ok()) return call.status();
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> started = requests.spawn(call.value().start(team));
    if (!started.ok()) return std::move(started).status();
    *request = requests.hand_out(*started, comm);
    keep_types(requests, call.value(), *request);
    return success();
}

Status persistent(Comm& comm, const Result<CollectiveCall>& call, MPI_Request* request) {
    const coll::Team team = comm.background_team();
    if (!call.ok()) return call.status();
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> made = requests.persistent(
        comm,
        [&requests, team, start = call.value().start] { return requests.spawn(start(team)); });
    if (!made.ok()) return std::move(made).status();
    *request = reinterpret_cast<MPI_Request>(*made);
    keep_types(requests, call.value(), *request);
    return success();
}

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// The three forms of a collective call.
#include "mpi/coll/collective_call.hpp"

#include "coll/tell_memory.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/faults/faults.hpp"

namespace gantry::mpi {
namespace {

void keep_types(Requests& requests, const CollectiveCall& call, MPI_Request request) {
    for (Datatype* type : call.types)
        if (type != nullptr) requests.keep(request, *type);
    for (Datatype* type : call.types_of_blocks)
        if (type != nullptr) requests.keep(request, *type);
}

// One run of the operation, behind its checks if there are any.
Task<Status> run(const CollectiveCall& call, coll::Team team) {
    return run_behind(call.agreement, team, call.start);
}

// What makes a run whenever the program starts its request.
StartCollective start_of(const CollectiveCall& call) {
    if (call.agreement.is_empty()) return call.start;
    return [terms = call.agreement.terms(), start = call.start](coll::Team team) {
        return run_if_agreed(team.executor(), team, terms, start);
    };
}

}  // namespace

Pending blocking(Comm& comm, const Result<CollectiveCall>& call) {
    if (!call.ok()) return Status(call.status());
    GANTRY_TRY(unless_revoked(comm));
    Task<Status> whole = run(call.value(), comm.team());
    if (comm.planner.known_memory().due()) [[unlikely]]
        whole = coll::then_tell_memory(comm.engine->executor(), std::move(whole), comm.team());
    return Pending(*comm.engine, std::move(whole));
}

Status nonblocking(Comm& comm, const Result<CollectiveCall>& call, MPI_Request* request) {
    if (!call.ok()) return call.status();
    GANTRY_TRY(unless_revoked(comm));
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> started = requests.spawn(run(call.value(), comm.background_team()));
    if (!started.ok()) return std::move(started).status();
    *request = requests.hand_out(*started, comm);
    keep_types(requests, call.value(), *request);
    return success();
}

Status persistent(Comm& comm, const Result<CollectiveCall>& call, MPI_Request* request) {
    if (!call.ok()) return call.status();
    const coll::Team team = comm.background_team();
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> made = requests.persistent(
        comm,
        [&requests, team, start = start_of(call.value())] { return requests.spawn(start(team)); });
    if (!made.ok()) return std::move(made).status();
    *request = reinterpret_cast<MPI_Request>(*made);
    keep_types(requests, call.value(), *request);
    return success();
}

}  // namespace gantry::mpi

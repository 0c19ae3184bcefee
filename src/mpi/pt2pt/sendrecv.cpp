// SPDX-License-Identifier: BSD-3-Clause
//
// Send and receive in one call (MPI 5.0 section 3.10). The replacing form receives into a buffer of
// its own and puts the data in place when the old data has left; data goes in place as a message to
// itself, which works for every layout and kind of memory.
#include "mpi/bodies.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"
#include "transfer/local_move.hpp"

namespace gantry::mpi {
namespace {

using Half = p2p::Messenger::Half;

Task<Status> finish(Executor& executor, Engine* engine, p2p::Request* request,
                    p2p::Outcome* outcome) {
    Status ended = co_await request->finished(executor);
    *outcome = request->outcome;
    engine->messenger().release(request);
    co_return p2p::unless_pending(std::move(ended));
}

const Half* unless_null(const Half& half) {
    return half.peer != MPI_PROC_NULL ? &half : nullptr;
}

// Both operations at once; either may be with MPI_PROC_NULL.
Task<Status> both(Executor& executor, Comm* comm, Half outgoing, Half incoming,
                  p2p::Outcome* received) {
    *received = proc_null_outcome();
    Result<p2p::Messenger::Exchange> started = comm->engine->messenger().exchange(
        comm->group, unless_null(outgoing), unless_null(incoming), false);
    if (!started.ok()) co_return started.status();
    Status sent, arrived;
    p2p::Outcome ignored;
    if (started->sending != nullptr)
        sent = co_await finish(executor, comm->engine, started->sending, &ignored);
    if (started->receiving != nullptr)
        arrived = co_await finish(executor, comm->engine, started->receiving, received);
    GANTRY_CO_TRY(sent);
    co_return arrived;
}

bool are_done(Polled& self) {
    for (void* each : {self.pointers[0], self.pointers[1]})
        if (each != nullptr && !static_cast<const p2p::Request*>(each)->done) return false;
    return true;
}

bool poll_both(Polled& self, Status& status) {
    if (!are_done(self)) return false;
    auto* const sending = static_cast<p2p::Request*>(self.pointers[0]);
    auto* const receiving = static_cast<p2p::Request*>(self.pointers[1]);
    write(static_cast<MPI_Status*>(self.pointers[2]),
          receiving != nullptr ? receiving->outcome : proc_null_outcome());
    if (receiving != nullptr) status = p2p::unless_pending(receiving->status);
    if (sending != nullptr && !sending->status.ok()) status = sending->status;
    for (p2p::Request* each : {sending, receiving})
        if (each != nullptr) self.engine->messenger().discard(each);
    return true;
}

Task<Status> replace(Executor& executor, Comm* comm, coll::Team team, Half outgoing, Half incoming,
                     p2p::Outcome* received) {
    const Bytes bytes = incoming.buffer.bytes();
    const p2p::Buffer in_place = incoming.buffer;
    transfer::BounceBuffer arrived = comm->engine->messenger().bounce_buffer(
        incoming.peer == MPI_PROC_NULL ? p2p::Buffer{} : in_place);
    if (arrived.data() == nullptr)
        co_return failure(MPI_ERR_NO_MEM,
                          "out of memory for the {} bytes that MPI_Sendrecv_replace receives aside",
                          bytes);
    incoming.buffer = transfer::bytes_buffer(arrived.data(), bytes);
    const Checks::StandIn stands(comm->engine->checks(), arrived.data(), in_place);
    Status ended = co_await both(executor, comm, outgoing, incoming, received);
    // Longer, or of other types (mpi/check): the message has come all the same.
    const bool has_come = ended.ok() || ended.error_class() == MPI_ERR_TRUNCATE ||
                          ended.error_class() == MPI_ERR_TYPE;
    if (!has_come) arrived.leave();
    GANTRY_CO_TRY(ended);
    const p2p::Buffer source = transfer::bytes_buffer(arrived.data(), received->bytes);
    Status placed = co_await transfer::copy_local(executor, *team.context, source, in_place);
    co_return placed;
}

Task<Status> replace_blocking(Executor& executor, Comm* comm, coll::Team team, Half outgoing,
                              Half incoming, MPI_Status* status) {
    p2p::Outcome received;
    Status ended = co_await replace(executor, comm, team, outgoing, incoming, &received);
    write(status, received);
    co_return ended;
}

}  // namespace

Pending sendrecv(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, int dest,
                 int sendtag, void* recvbuf, MPI_Count recvcount, Datatype& recvtype, int source,
                 int recvtag, Comm& comm, MPI_Status* status) {
    const Half outgoing{buffer(sendbuf, sendcount, sendtype), dest, sendtag};
    const Half incoming{buffer(recvbuf, recvcount, recvtype), source, recvtag};
    Result<p2p::Messenger::Exchange> both = comm.engine->messenger().exchange(
        comm.group, unless_null(outgoing), unless_null(incoming), true);
    if (!both.ok()) return both.status();
    Polled polled;
    polled.function = poll_both;
    polled.look = are_done;
    polled.engine = comm.engine;
    polled.pointers[0] = both->sending;
    polled.pointers[1] = both->receiving;
    polled.pointers[2] = status;
    return Pending(polled);
}

Pending sendrecv_replace(void* buf, MPI_Count count, Datatype& datatype, int dest, int sendtag,
                         int source, int recvtag, Comm& comm, MPI_Status* status) {
    const Half outgoing{buffer(buf, count, datatype), dest, sendtag};
    const Half incoming{buffer(buf, count, datatype), source, recvtag};
    return Pending(*comm.engine,
                   replace_blocking(comm.engine->executor(), &comm, comm.engine->alone(), outgoing,
                                    incoming, status));
}

Status isendrecv(const void* sendbuf, MPI_Count sendcount, Datatype& sendtype, int dest,
                 int sendtag, void* recvbuf, MPI_Count recvcount, Datatype& recvtype, int source,
                 int recvtag, Comm& comm, MPI_Request* request) {
    const Half outgoing{buffer(sendbuf, sendcount, sendtype), dest, sendtag};
    const Half incoming{buffer(recvbuf, recvcount, recvtype), source, recvtag};
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> made = requests.create(p2p::RequestKind::collective);
    if (!made.ok()) return std::move(made).status();
    *request = requests.hand_out(*made, comm, &sendtype, &recvtype, true);
    requests.run(*made,
                 both(comm.engine->executor(), &comm, outgoing, incoming, &(*made)->outcome));
    return success();
}

Status isendrecv_replace(void* buf, MPI_Count count, Datatype& datatype, int dest, int sendtag,
                         int source, int recvtag, Comm& comm, MPI_Request* request) {
    const Half outgoing{buffer(buf, count, datatype), dest, sendtag};
    const Half incoming{buffer(buf, count, datatype), source, recvtag};
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> made = requests.create(p2p::RequestKind::collective);
    if (!made.ok()) return std::move(made).status();
    *request = requests.hand_out(*made, comm, &datatype, nullptr, true);
    requests.run(*made, replace(comm.engine->executor(), &comm, comm.engine->alone(), outgoing,
                                incoming, &(*made)->outcome));
    return success();
}

}  // namespace gantry::mpi

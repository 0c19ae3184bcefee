// SPDX-License-Identifier: BSD-3-Clause
//
// Sends and receives (MPI 5.0 sections 3.2 to 3.7). The blocking ones end without a handle: a small
// host message is done when the body returns, with nothing allocated and no coroutine.
#include "mpi/bodies.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/faults/faults.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"

namespace gantry::mpi {
namespace {

using p2p::SendMode;

Pending await_request(Comm& comm, Result<p2p::Request*> started, MPI_Status* status) {
    if (!started.ok()) return std::move(started).status();
    if (*started == nullptr) return Pending(*comm.engine);
    return Pending(*comm.engine, *started, status);
}

Pending blocking_send(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag,
                      Comm& comm, SendMode mode) {
    if (dest == MPI_PROC_NULL) return unless_revoked(comm);
    return await_request(comm,
                         comm.engine->messenger().send_to_wait(
                             comm.group, buffer(buf, count, datatype), dest, tag, mode),
                         MPI_STATUS_IGNORE);
}

Status nonblocking_send(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag,
                        Comm& comm, SendMode mode, MPI_Request* request) {
    Engine& engine = *comm.engine;
    const HandOver hand_over(engine.executor());
    if (dest == MPI_PROC_NULL) GANTRY_TRY(unless_revoked(comm));
    Result<p2p::Request*> started =
        dest == MPI_PROC_NULL
            ? engine.requests().completed(p2p::RequestKind::send, proc_null_outcome())
            : engine.messenger().isend(comm.group, buffer(buf, count, datatype), dest, tag, mode);
    if (!started.ok()) return std::move(started).status();
    *request = engine.requests().hand_out(*started, comm, &datatype);
    return success();
}

}  // namespace

Pending send(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
    return blocking_send(buf, count, datatype, dest, tag, comm, SendMode::standard);
}

Pending ssend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
    return blocking_send(buf, count, datatype, dest, tag, comm, SendMode::synchronous);
}

Pending rsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
    return blocking_send(buf, count, datatype, dest, tag, comm, SendMode::ready);
}

Status isend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
             MPI_Request* request) {
    return nonblocking_send(buf, count, datatype, dest, tag, comm, SendMode::standard, request);
}

Status issend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
              MPI_Request* request) {
    return nonblocking_send(buf, count, datatype, dest, tag, comm, SendMode::synchronous, request);
}

Status irsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
              MPI_Request* request) {
    return nonblocking_send(buf, count, datatype, dest, tag, comm, SendMode::ready, request);
}

Pending recv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm,
             MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        write(status, proc_null_outcome());
        return unless_revoked(comm);
    }
    return await_request(comm,
                         comm.engine->messenger().receive_to_wait(
                             comm.group, buffer(buf, count, datatype), source, tag),
                         status);
}

Status irecv(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm,
             MPI_Request* request) {
    Engine& engine = *comm.engine;
    const HandOver hand_over(engine.executor());
    if (source == MPI_PROC_NULL) GANTRY_TRY(unless_revoked(comm));
    Result<p2p::Request*> started =
        source == MPI_PROC_NULL
            ? engine.requests().completed(p2p::RequestKind::receive, proc_null_outcome())
            : engine.messenger().ireceive(comm.group, buffer(buf, count, datatype), source, tag);
    if (!started.ok()) return std::move(started).status();
    *request = engine.requests().hand_out(*started, comm, &datatype);
    return success();
}

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// Persistent point-to-point requests (MPI 5.0 section 3.9): the arguments of a send or receive,
// started as often as the program likes.
#include "mpi/bodies.hpp"
#include "mpi/buffer.hpp"
#include "mpi/buffered.hpp"
#include "mpi/engine.hpp"
#include "mpi/process.hpp"
#include "mpi/status.hpp"

namespace gantry::mpi {
namespace {

using Start = std::function<Result<p2p::Request*>()>;

Status make(Comm& comm, Datatype& datatype, Start start, MPI_Request* request) {
    Requests& requests = comm.engine->requests();
    Result<p2p::Request*> made = requests.persistent(comm, std::move(start));
    if (!made.ok()) return std::move(made).status();
    *request = reinterpret_cast<MPI_Request>(*made);
    requests.keep(*request, datatype);
    return success();
}

Status make_send(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag,
                 Comm& comm, p2p::SendMode mode, MPI_Request* request) {
    const p2p::Buffer data = buffer(buf, count, datatype);
    return make(
        comm, datatype,
        [data, dest, tag, &comm, mode] {
            if (dest == MPI_PROC_NULL)
                return comm.engine->requests().completed(p2p::RequestKind::send,
                                                         proc_null_outcome());
            return comm.engine->messenger().isend(comm.group, data, dest, tag, mode);
        },
        request);
}

}  // namespace

Status send_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag,
                 Comm& comm, MPI_Request* request) {
    return make_send(buf, count, datatype, dest, tag, comm, p2p::SendMode::standard, request);
}

Status ssend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag,
                  Comm& comm, MPI_Request* request) {
    return make_send(buf, count, datatype, dest, tag, comm, p2p::SendMode::synchronous, request);
}

Status rsend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag,
                  Comm& comm, MPI_Request* request) {
    return make_send(buf, count, datatype, dest, tag, comm, p2p::SendMode::ready, request);
}

Status bsend_init(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag,
                  Comm& comm, MPI_Request* request) {
    const p2p::Buffer data = buffer(buf, count, datatype);
    return make(
        comm, datatype, [data, dest, tag, &comm] { return start_buffered(comm, data, dest, tag); },
        request);
}

Status recv_init(void* buf, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm,
                 MPI_Request* request) {
    const p2p::Buffer data = buffer(buf, count, datatype);
    return make(
        comm, datatype,
        [data, source, tag, &comm] {
            if (source == MPI_PROC_NULL)
                return comm.engine->requests().completed(p2p::RequestKind::receive,
                                                         proc_null_outcome());
            return comm.engine->messenger().ireceive(comm.group, data, source, tag);
        },
        request);
}

Status start(MPI_Request* request) {
    Engine& engine = *process().engine;
    const HandOver hand_over(engine.executor());
    return engine.requests().start(*find(*request));
}

Status startall(int count, MPI_Request* array_of_requests) {
    for (int i = 0; i < count; ++i)
        GANTRY_TRY(start(&array_of_requests[i]));
    return success();
}

}  // namespace gantry::mpi

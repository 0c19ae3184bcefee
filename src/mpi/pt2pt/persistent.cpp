// SPDX-License-Identifier: BSD-3-Clause
//
// Persistent point-to-point requests (MPI 5.0 section 3.9): the arguments of a send or receive,
// started as often as the program likes.
#include "mpi/bodies.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/pt2pt/buffered.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"

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

// Everything is started; of buffered sends the data is copied.
bool are_started(Polled& self) {
    const auto* handles = static_cast<const MPI_Request*>(self.pointers[0]);
    int& first_open = self.numbers[1];
    for (; first_open < self.numbers[0]; ++first_open) {
        // Another thread may have freed it meanwhile.
        const Request* request = find(handles[first_open]);
        const Operation* operation =
            request != nullptr ? Requests::operation_of(*request) : nullptr;
        if (operation != nullptr && operation->buffered && !Requests::over(*request)) return false;
    }
    return true;
}
bool poll_started(Polled& self, Status&) {
    return are_started(self);
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
    GANTRY_TRY(make(
        comm, datatype, [data, dest, tag, &comm] { return start_buffered(comm, data, dest, tag); },
        request));
    Requests::operation_of(*find(*request))->buffered = true;
    return success();
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

Pending start(MPI_Request* request) {
    return startall(1, request);
}

Pending startall(int count, MPI_Request* array_of_requests) {
    Engine& engine = *process().engine;
    const HandOver hand_over(engine.executor());
    Polled polled;
    polled.function = poll_started;
    polled.look = are_started;
    polled.engine = &engine;
    polled.pointers[0] = array_of_requests;
    polled.numbers[0] = count;
    bool waits = false;
    for (int i = 0; i < count; ++i) {
        Request& request = *find(array_of_requests[i]);
        GANTRY_TRY(engine.requests().start(request));
        waits = waits || Requests::operation_of(request)->buffered;
    }
    if (!waits || are_started(polled)) return success();
    return Pending(polled);
}

}  // namespace gantry::mpi

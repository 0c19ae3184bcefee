// SPDX-License-Identifier: BSD-3-Clause
//
// Buffered sends. Host data is packed on the spot; device data is copied through a message to this
// process itself, and then sent (the one case in which the request is not complete at once, and
// MPI_Ibsend waits for it: a local copy).
#include "mpi/pt2pt/buffered.hpp"

#include "coll/host_image.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"
#include "transfer/local_move.hpp"

#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace gantry::mpi {
namespace {

using Memory = std::unique_ptr<std::byte[]>;

// The buffer that counts: the communicator's own, else that of its session, else the process's.
SendBuffer& buffer_for(Comm& comm) {
    if (comm.send_buffer.attached) return comm.send_buffer;
    if (comm.session_buffer != nullptr && comm.session_buffer->attached)
        return *comm.session_buffer;
    return process().send_buffer;
}

bool fits(const SendBuffer& held, Bytes bytes) {
    return held.automatic || held.held + bytes <= held.size;
}

Status reserve(Engine& engine, SendBuffer& held, Bytes bytes) {
    if (!held.attached)
        return failure(
            MPI_ERR_BUFFER,
            "a buffered send of {} bytes without an attached buffer; call MPI_Buffer_attach first",
            bytes);
    // Of messages that were received the space is free again (MPI 5.0 section 3.6), but only
    // progress learns that they were.
    while (!fits(held, bytes) && engine.progress_waiting() > 0) {
    }
    if (!fits(held, bytes))
        return failure(MPI_ERR_BUFFER,
                       "a buffered send of {} bytes: the attached buffer of {} bytes holds {} "
                       "bytes of earlier messages",
                       bytes, held.size, held.held);
    held.held += bytes;
    ++held.messages;
    return success();
}

void give_back(SendBuffer& held, Bytes bytes) {
    held.held -= bytes;
    if (--held.messages > 0) return;
    for (p2p::Request* flush : std::exchange(held.flushes, {}))
        flush->complete(success());
}

// Whether the processor reads the data. Absolute addresses may mean several kinds of memory.
bool packed_here(Engine& engine, const p2p::Buffer& data) {
    if (data.address == MPI_BOTTOM) return !engine.device().active();
    return coll::on_host(engine.alone(), data);
}

// Keeps the packed data until its message has left.
Task<Status> hold(Executor& executor, Comm* comm, p2p::Request* request, Memory memory,
                  SendBuffer* held, Bytes bytes) {
    Status sent = co_await request->finished(executor);
    comm->engine->messenger().release(request);
    memory.reset();
    give_back(*held, bytes);
    release(comm);
    co_return sent;
}

Result<p2p::Request*> send_packed(Comm& comm, const std::byte* packed, Bytes bytes, int dest,
                                  int tag) {
    return comm.engine->messenger().isend(comm.group, transfer::bytes_buffer(packed, bytes), dest,
                                          tag, p2p::SendMode::standard);
}

// The task that holds the data runs on its own, apart from the program's request.
Status send_and_hold(Comm& comm, const p2p::Buffer& data, Memory memory, SendBuffer& held, int dest,
                     int tag) {
    const Bytes bytes = data.bytes();
    const Checks::StandIn stands(comm.engine->checks(), memory.get(), data);
    Result<p2p::Request*> sending = send_packed(comm, memory.get(), bytes, dest, tag);
    if (!sending.ok()) {
        give_back(held, bytes);
        return std::move(sending).status();
    }
    comm.engine->requests().background(
        hold(comm.engine->executor(), retain(&comm), *sending, std::move(memory), &held, bytes));
    return success();
}

Task<Status> pack_then_send(Executor& executor, Comm* comm, p2p::Buffer data, Memory memory,
                            SendBuffer* held, int dest, int tag) {
    const Bytes bytes = data.bytes();
    const p2p::Buffer packed = transfer::bytes_buffer(memory.get(), bytes);
    Status copied = co_await transfer::copy_local(executor, comm->engine->transfer(), data, packed);
    if (!copied.ok()) {
        give_back(*held, bytes);
        co_return copied;
    }
    co_return send_and_hold(*comm, data, std::move(memory), *held, dest, tag);
}

Status attach(SendBuffer& held, void* address, MPI_Count size) {
    if (held.attached)
        return failure(MPI_ERR_BUFFER, "a buffer is attached already; detach it first");
    held = {address, static_cast<Bytes>(size), true, address == MPI_BUFFER_AUTOMATIC};
    return success();
}

bool is_empty(Polled& self) {
    return static_cast<const SendBuffer*>(self.pointers[0])->messages == 0;
}
bool poll_empty(Polled& self, Status&) {
    return is_empty(self);
}

Pending when_empty(SendBuffer& held) {
    Polled polled;
    polled.function = poll_empty;
    polled.look = is_empty;
    polled.engine = process().engine.get();
    polled.pointers[0] = &held;
    return Pending(polled);
}

bool poll_detach(Polled& self, Status&) {
    auto& held = *static_cast<SendBuffer*>(self.pointers[0]);
    if (held.messages > 0) return false;
    std::memcpy(self.pointers[1], &held.address, sizeof held.address);
    *static_cast<MPI_Count*>(self.pointers[2]) = static_cast<MPI_Count>(held.size);
    held = {};
    return true;
}

Pending detach(SendBuffer& held, void* address, MPI_Count* size) {
    if (!held.attached) return failure(MPI_ERR_BUFFER, "no buffer is attached");
    Polled polled;
    polled.function = poll_detach;
    polled.look = is_empty;
    polled.engine = process().engine.get();
    polled.pointers[0] = &held;
    polled.pointers[1] = address;
    polled.pointers[2] = size;
    return Pending(polled);
}

// `comm` null: of a session or of the process.
Status iflush(SendBuffer& held, Comm* comm, MPI_Request* request) {
    Requests& requests = process().engine->requests();
    Result<p2p::Request*> made = requests.create(p2p::RequestKind::collective);
    if (!made.ok()) return std::move(made).status();
    *request = comm != nullptr ? requests.hand_out(*made, *comm, nullptr, nullptr, true)
                               : requests.hand_out(*made);
    if (held.messages == 0)
        (*made)->complete(success());
    else
        held.flushes.push_back(*made);
    return success();
}

bool is_done(Polled& self) {
    return static_cast<const p2p::Request*>(self.pointers[0])->done;
}
bool poll_done(Polled& self, Status&) {
    return is_done(self);
}

}  // namespace

Result<p2p::Request*> start_buffered(Comm& comm, const p2p::Buffer& data, int dest, int tag) {
    Engine& engine = *comm.engine;
    if (dest == MPI_PROC_NULL)
        return engine.requests().completed(p2p::RequestKind::send, proc_null_outcome());
    SendBuffer& held = buffer_for(comm);
    const Bytes bytes = data.bytes();
    GANTRY_TRY(reserve(engine, held, bytes));
    Memory memory(new (std::nothrow) std::byte[bytes > 0 ? bytes : 1]);
    if (memory == nullptr) {
        give_back(held, bytes);
        return failure(MPI_ERR_NO_MEM, "out of memory for a buffered send of {} bytes", bytes);
    }
    if (packed_here(engine, data)) {
        layout::pack(*data.layout, data.address, 0, bytes, memory.get());
        GANTRY_TRY(send_and_hold(comm, data, std::move(memory), held, dest, tag));
        return engine.requests().completed(p2p::RequestKind::send, p2p::Outcome{});
    }
    return engine.requests().spawn(
        pack_then_send(engine.executor(), &comm, data, std::move(memory), &held, dest, tag));
}

Pending bsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm) {
    Result<p2p::Request*> started = start_buffered(comm, buffer(buf, count, datatype), dest, tag);
    if (!started.ok()) return std::move(started).status();
    return Pending(*comm.engine, *started, MPI_STATUS_IGNORE);
}

Pending ibsend(const void* buf, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
               MPI_Request* request) {
    Result<p2p::Request*> started = start_buffered(comm, buffer(buf, count, datatype), dest, tag);
    if (!started.ok()) return std::move(started).status();
    *request = comm.engine->requests().hand_out(*started, comm);
    if ((*started)->done) return success();
    Polled polled;
    polled.function = poll_done;
    polled.look = is_done;
    polled.engine = comm.engine;
    polled.pointers[0] = *started;
    return Pending(polled);
}

Status buffer_attach(void* buf, MPI_Count size) {
    return attach(process().send_buffer, buf, size);
}
Pending buffer_detach(void* buffer_addr, MPI_Count* size) {
    return detach(process().send_buffer, buffer_addr, size);
}
Pending buffer_flush() {
    return when_empty(process().send_buffer);
}
Status buffer_iflush(MPI_Request* request) {
    return iflush(process().send_buffer, nullptr, request);
}

Status session_attach_buffer(Session& session, void* buf, MPI_Count size) {
    return attach(*session.send_buffer, buf, size);
}
Pending session_detach_buffer(Session& session, void* buffer_addr, MPI_Count* size) {
    return detach(*session.send_buffer, buffer_addr, size);
}
Pending session_flush_buffer(Session& session) {
    return when_empty(*session.send_buffer);
}
Status session_iflush_buffer(Session& session, MPI_Request* request) {
    return iflush(*session.send_buffer, nullptr, request);
}

Status comm_attach_buffer(Comm& comm, void* buf, MPI_Count size) {
    return attach(comm.send_buffer, buf, size);
}
Pending comm_detach_buffer(Comm& comm, void* buffer_addr, MPI_Count* size) {
    return detach(comm.send_buffer, buffer_addr, size);
}
Pending comm_flush_buffer(Comm& comm) {
    return when_empty(comm.send_buffer);
}
Status comm_iflush_buffer(Comm& comm, MPI_Request* request) {
    return iflush(comm.send_buffer, &comm, request);
}

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// Probes, plain and matched (MPI 5.0 section 3.8). The blocking forms are polled conditions.
#include "mpi/bodies.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/faults/faults.hpp"
#include "mpi/engine/pending.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"

namespace gantry::mpi {
namespace {

// Whether a message is there, or none can come any more.
bool look(Polled& self) {
    auto* comm = static_cast<Comm*>(self.pointers[0]);
    p2p::Messenger& messenger = self.engine->messenger();
    const int source = self.numbers[0];
    return messenger.probe(comm->group, source, self.numbers[1]).message != nullptr ||
           !messenger.nothing_comes(comm->group, source).ok();
}

Polled condition(Polled::Function function, Comm& comm, int source, int tag, MPI_Message* message,
                 MPI_Status* status) {
    Polled polled;
    polled.function = function;
    polled.look = look;
    polled.engine = comm.engine;
    polled.pointers[0] = &comm;
    polled.pointers[1] = status;
    polled.pointers[2] = message;
    polled.numbers[0] = source;
    polled.numbers[1] = tag;
    return polled;
}

bool poll_probe(Polled& self, Status& ended) {
    auto* comm = static_cast<Comm*>(self.pointers[0]);
    const p2p::Matched found =
        self.engine->messenger().probe(comm->group, self.numbers[0], self.numbers[1]);
    if (found.message == nullptr) {
        ended = self.engine->messenger().nothing_comes(comm->group, self.numbers[0]);
        return !ended.ok();
    }
    write(static_cast<MPI_Status*>(self.pointers[1]), found.outcome);
    return true;
}

// Takes the message out for the program, if there is one and may be one.
Status take(Comm& comm, int source, int tag, MPI_Message* message, MPI_Status* status,
            bool& found) {
    const p2p::Matched matched = comm.engine->messenger().take(comm.group, source, tag);
    found = matched.message != nullptr;
    if (!found) return comm.engine->messenger().nothing_comes(comm.group, source);
    Message* object = create(process().messages);
    if (object == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a matched message");
    object->comm = retain(&comm);
    object->matched = matched;
    *message = object->handle;
    write(status, matched.outcome);
    return success();
}

bool poll_take(Polled& self, Status& ended) {
    bool found = false;
    ended = take(*static_cast<Comm*>(self.pointers[0]), self.numbers[0], self.numbers[1],
                 static_cast<MPI_Message*>(self.pointers[2]),
                 static_cast<MPI_Status*>(self.pointers[1]), found);
    return found || !ended.ok();
}

// Starts the receive of a matched message and ends the program's handle, whose communicator is the
// caller's to release. One that does not start leaves the message where it is: it can be received
// once more.
Result<p2p::Request*> receive_matched(void* buf, MPI_Count count, Datatype& datatype,
                                      MPI_Message* message, Comm*& comm) {
    Message* object = find(*message);
    p2p::Messenger& messenger = object->comm->engine->messenger();
    Result<p2p::Request*> started = messenger.ireceive_matched(object->comm->group, object->matched,
                                                               buffer(buf, count, datatype));
    if (!started.ok()) return started;
    comm = object->comm;
    process().messages.destroy(object);
    *message = MPI_MESSAGE_NULL;
    return started;
}

}  // namespace

Pending probe(int source, int tag, Comm& comm, MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        write(status, proc_null_outcome());
        return unless_revoked(comm);
    }
    return Pending(condition(poll_probe, comm, source, tag, nullptr, status));
}

Status iprobe(int source, int tag, Comm& comm, int* flag, MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        *flag = 1;
        write(status, proc_null_outcome());
        return unless_revoked(comm);
    }
    p2p::Matched found = comm.engine->messenger().probe(comm.group, source, tag);
    if (found.message == nullptr) {
        turn(*comm.engine);
        found = comm.engine->messenger().probe(comm.group, source, tag);
    }
    *flag = found.message != nullptr;
    if (found.message == nullptr) return comm.engine->messenger().nothing_comes(comm.group, source);
    write(status, found.outcome);
    return success();
}

Pending mprobe(int source, int tag, Comm& comm, MPI_Message* message, MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        *message = MPI_MESSAGE_NO_PROC;
        write(status, proc_null_outcome());
        return unless_revoked(comm);
    }
    return Pending(condition(poll_take, comm, source, tag, message, status));
}

Status improbe(int source, int tag, Comm& comm, int* flag, MPI_Message* message,
               MPI_Status* status) {
    if (source == MPI_PROC_NULL) {
        *flag = 1;
        *message = MPI_MESSAGE_NO_PROC;
        write(status, proc_null_outcome());
        return unless_revoked(comm);
    }
    bool found = false;
    GANTRY_TRY(take(comm, source, tag, message, status, found));
    if (!found) {
        turn(*comm.engine);
        GANTRY_TRY(take(comm, source, tag, message, status, found));
    }
    *flag = found;
    return success();
}

Pending mrecv(void* buf, MPI_Count count, Datatype& datatype, MPI_Message* message,
              MPI_Status* status) {
    if (*message == MPI_MESSAGE_NO_PROC) {
        *message = MPI_MESSAGE_NULL;
        write(status, proc_null_outcome());
        return success();
    }
    Comm* comm = nullptr;
    Result<p2p::Request*> started = receive_matched(buf, count, datatype, message, comm);
    if (!started.ok()) return std::move(started).status();
    Engine& engine = *comm->engine;
    release(comm);
    return Pending(engine, *started, status);
}

Status imrecv(void* buf, MPI_Count count, Datatype& datatype, MPI_Message* message,
              MPI_Request* request) {
    Process& p = process();
    if (*message == MPI_MESSAGE_NO_PROC) {
        Result<p2p::Request*> done =
            p.engine->requests().completed(p2p::RequestKind::receive, proc_null_outcome());
        if (!done.ok()) return std::move(done).status();
        *message = MPI_MESSAGE_NULL;
        *request = p.self != nullptr ? p.engine->requests().hand_out(*done, *p.self)
                                     : p.engine->requests().hand_out(*done);
        return success();
    }
    Comm* comm = nullptr;
    Result<p2p::Request*> started = receive_matched(buf, count, datatype, message, comm);
    if (!started.ok()) return std::move(started).status();
    *request = comm->engine->requests().hand_out(*started, *comm, &datatype);
    release(comm);
    return success();
}

}  // namespace gantry::mpi

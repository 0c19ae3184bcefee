// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of the receiver's side share (rendezvous_receive.cpp decides, protocols/ move the
// bytes): the state of one incoming rendezvous.
#pragma once

#include "p2p/messages.hpp"
#include "transfer/staging_copy.hpp"

#include <vector>

namespace gantry::p2p {

using transfer::Side;

struct Receiving {
    Messages& messages;
    Incoming& message;
    Side side;
    Bytes accepted = 0;
    Bytes taken = 0;  // of them: has come in pieces
    Verdict verdict{};
    bool shared = false;    // slots of the sender are read in place
    bool answered = false;  // a CTS has gone out
    bool claimed = false;   // we copy, although the sender was told to
    const plan::Plan& plan() const { return verdict.plan(); }
    transfer::Staging staging() const {
        return {side, plan().sink_engine, transfer::notice_of(plan())};
    }
    transfer::Context& context() const { return messages.context; }
    transfer::Endpoint& sender() const { return messages.endpoint(message.peer); }
};

// Sends the verdict.
Status answer(Receiving& receiving, wire::Cts cts, const transport::RemoteKey& key = {},
              const std::vector<std::uint32_t>& grants = {});
// A slot goes back to its owner.
Status return_slot(Receiving& receiving, const wire::Chunk& chunk);

// The receiver's side of a rendezvous, from its match to its end.
Task<Status> receive_rendezvous(Executor& executor, Messages& messages, Incoming& message);

// --- protocols/ ---
// Chunks in slots until everything accepted is in place, in whatever order they arrive.
Task<Status> take_chunks(Executor& executor, Receiving& receiving);
// Put wire, through our slots.
Task<Status> take_puts_in_slots(Executor& executor, Receiving& receiving);
// Put wire, straight into the user's buffer. MPI_ERR_UNSUPPORTED_OPERATION: it cannot be registered,
// and nobody was told anything yet.
Task<Status> take_puts_directly(Executor& executor, Receiving& receiving);
// The transport writes what the sender exposed straight to its place.
Task<Status> get_exposed(Executor& executor, Receiving& receiving);
// We read the sender's host memory, and say FIN. MPI_ERR_UNSUPPORTED_OPERATION: it cannot be read, and
// nobody was told anything yet.
Task<Status> read_by_cma(Executor& executor, Receiving& receiving);
// Both ends in this process.
Task<Status> copy_locally(Executor& executor, Receiving& receiving);
// We copy out of the sender's device memory. MPI_ERR_UNSUPPORTED_OPERATION: it cannot be mapped
// here.
Task<Status> get_by_ipc(Executor& executor, Receiving& receiving);
// The sender copies into our device memory, unless it does not come and we can: then the plan says
// so. MPI_ERR_UNSUPPORTED_OPERATION: we cannot export it, or it cannot map it; MPI_ERR_PENDING: it
// closed its mapping meanwhile.
Task<Status> let_sender_put(Executor& executor, Receiving& receiving);

}  // namespace gantry::p2p

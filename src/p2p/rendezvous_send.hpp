// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of the sender's side share (rendezvous_send.cpp decides, protocols/ move the bytes):
// the state of one outgoing rendezvous.
#pragma once

#include "p2p/messages.hpp"
#include "transfer/staging_copy.hpp"

#include <deque>
#include <memory>

namespace gantry::p2p {

using transfer::Side;

// A piece that sits in one of our slots, or is being copied there.
struct Staged {
    explicit Staged(Executor& executor) : copied(executor) {}
    Slot slot;
    Bytes offset = 0;
    Bytes bytes = 0;
    Nanoseconds begin = 0;  // of its copy, where that is traced
    Completion copied;
};

struct Sending {
    Messages& messages;
    Outgoing& message;
    Side side;
    plan::Plan plan;
    Bytes limit = 0;   // bytes to send: all, or what the receiver has room for
    Bytes offset = 0;  // next byte to stage
    std::deque<std::unique_ptr<Staged>> ahead;  // put wire: copied before the verdict
    bool answered = false;                      // the verdict is in `plan`
    transfer::Staging staging() const {
        return {side, plan.source_engine, transfer::notice_of(plan)};
    }
    transfer::Context& context() const { return messages.context; }
    transfer::Endpoint& peer() const { return messages.endpoint(message.peer); }
};

// The sender's side of a rendezvous, from its RTS to its end.
Task<Status> send_rendezvous(Executor& executor, Messages& messages, Outgoing& message);
// Waits for the verdict, and takes over what it says.
Task<Status> await_verdict(Executor& executor, Sending& sending);

// --- protocols/ ---
// Pieces in slots that the receiver reads in place.
Task<Status> send_shared(Executor& executor, Sending& sending);
// Put wire: copies to slots that start before the verdict, until there are so many.
void stage_ahead(Sending& sending, int pieces);
// Ahead copies that the verdict has no use for end before their slots go back.
Task<Status> drop_ahead(Executor& executor, Sending& sending, SlotPool& pool);
// All pieces, from slots or straight from the user's buffer, into the receiver's slots or memory.
Task<Status> send_puts(Executor& executor, Sending& sending);
// The receiver named its device memory: copies into it. MPI_ERR_UNSUPPORTED_OPERATION: it cannot be
// mapped here; MPI_ERR_PENDING: its mapping was closed meanwhile.
Task<Status> put_by_ipc(Executor& executor, Sending& sending);
// The driver keeps the GPU of the verdict's sink from this process.
bool keeps_away(const Sending& sending);
Status tell_in_place(Sending& sending, Bytes bytes, std::uint32_t why = wire::kRefused);

}  // namespace gantry::p2p

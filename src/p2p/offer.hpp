// SPDX-License-Identifier: BSD-3-Clause
//
// The offer of a message that its sender does not just send: what the planner makes of what the
// sender knows, and the RTS that tells the receiver of it.
#pragma once

#include "p2p/outgoing.hpp"
#include "plan/selection_cache.hpp"
#include "transfer/context.hpp"

namespace gantry::p2p {

class Messages;

// A message that is about to leave, as its sender knows it.
struct Departure {
    int to;
    const Buffer& buffer;
    const device::Location& location;
    bool synchronous;   // MPI_Ssend
    bool eager_credit;  // the peer has room for it
    bool announced =
        false;             // by another layer (announced.cpp): no transport exposes it with its RTS
    bool awaited = false;  // SendMode
    Bytes bytes() const { return buffer.bytes(); }
};

plan::Facts facts_for_offer(transfer::Context& context, transfer::Endpoint& to,
                            const device::Location& source, bool contiguous = true);
// Whether this process has device work pending, as its RTS says.
bool is_busy(const Messages& messages);
// Asks the planner.
plan::Selection& select_offer(Messages& messages, const Departure& departure);
// The same where the network refused to register the source.
plan::Selection& select_offer_unregistered(Messages& messages, const plan::Selection& refused);
// Whether puts read the source itself, which then must be registered before the offer is made.
bool reads_device_memory_itself(const plan::Plan& offer, const Departure& departure);

// All of the RTS but the flags and the claim word that it may name.
wire::Rts make_rts(Messages& messages, const Departure& departure, const plan::Selection& offer,
                   std::uint64_t id, const wire::Envelope& envelope);
// A receiver that could read as well may put the sender to work: then the message needs a claim word.
bool may_be_told_to_put(Messages& messages, const Departure& departure, const wire::Rts& rts);

// Whether the RTS of that answer may leave in short: it is the template, from the same allocation.
bool rts_holds(Messages& messages, const Departure& departure, const plan::Selection& offer);
// The RTS of that answer has left, and is the template now, if it can be one.
void remember_rts(Messages& messages, const Departure& departure, plan::Selection& offer,
                  const wire::Rts& rts);

// Nothing is copied ahead of the verdict.
bool waits_for_an_answer(const plan::Plan& offer);
// An RTS costs a network microseconds of the processor, and a copy engine none: the copy comes first.
bool copies_before_rts(const transfer::Endpoint& to, const Departure& departure,
                       const plan::Plan& offer);

// What puts of this message read, registered until the message ends; released with it.
Status register_source(Messages& messages, Outgoing& message);
void release_source(Messages& messages, Outgoing& message);

}  // namespace gantry::p2p

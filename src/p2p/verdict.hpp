// SPDX-License-Identifier: BSD-3-Clause
//
// Verdict: what a receiver decides about one rendezvous message, now that both ends are known. It asks
// the planner and keeps the accounts that decide later messages: what is staged counts towards a
// mapping, what a time-sliced GPU would have saved counts towards taking it.
#pragma once

#include "p2p/request.hpp"
#include "p2p/wire.hpp"
#include "plan/selection_cache.hpp"
#include "transfer/context.hpp"

namespace gantry::p2p {

struct Verdict {
    plan::Question question;
    plan::Facts facts;
    plan::Choice choice;
    std::uint64_t direct_next = 0;  // advice for the sender, see wire::Cts
    bool wants_descriptor = false;  // of the source's allocation, to read it next time
    const plan::Plan& plan() const { return choice.plan; }
};

// One message from `from`: what the RTS says (`whole`, but for what is the message's `own`), into the
// buffer of `receive`, of which `accepted` bytes are filled.
struct Asked {
    transfer::Endpoint& from;
    const wire::Rts& whole;
    const wire::RtsFromTemplate& own;
    const Request& receive;
    Bytes accepted;
    // All of it is in the sender's slots before anybody answers: the sender may be done.
    bool all_ahead() const {
        return from.facts.shared_memory && wire::all_ahead(offer(), own.envelope.bytes);
    }
    wire::Plan offer() const {
        wire::Plan offer = whole.offer;
        if (own.slot_flag.cuts_through != 0)
            offer.chunk = std::max<std::uint64_t>(offer.chunk, own.envelope.bytes);
        return offer;
    }
};

// The name under which RemoteMemory keeps what comes of puts into memory of ours on that sink's GPU, from
// where strided blocks are unpacked.
std::uint64_t packed_puts(const device::Location& sink);

// Fills in question and facts.
void gather(transfer::Context& context, const Asked& asked, Verdict& verdict);
// The facts about mappings alone, anew.
void look_at_mappings(transfer::Context& context, const Asked& asked, Verdict& verdict);
// Decides, from the question and the facts. The selection is good until the planner is asked again.
const plan::Selection& decide(transfer::Context& context, const Asked& asked, Verdict& verdict);

// What the verdict on such a message follows from, beside what changes the epoch of the peer: of a get the
// two buffers; of a message by flags, whose buffers may be new each time, how they could be mapped.
plan::SelectionCache::Hint hint_of_verdict(const transfer::Context& context, const Asked& asked);
// Not where a time-sliced GPU or a BAR mapping keeps accounts of each message.
bool may_be_hinted(transfer::Context& context, const Verdict& verdict);
// What is known of a message from the last one between those two buffers, or (by flags) of that size.
plan::Selection* known_verdict(transfer::Context& context, const Asked& asked,
                               const plan::SelectionCache::Hint& hint);

// The GPU whose context and stream copy: our own buffer's, else the peer's if we see it, else any.
int copying_gpu(transfer::Context& context, const device::Location& sink,
                const device::Uuid& source_gpu);

}  // namespace gantry::p2p

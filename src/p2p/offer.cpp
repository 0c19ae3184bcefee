// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/offer.hpp"

#include "p2p/messages.hpp"

namespace gantry::p2p {
namespace {

// Asking may start what lets later messages expose their memory.
bool may_expose(const Conversation& to, const Departure& departure) {
    const transport::PeerFacts& facts = to.endpoint.facts;
    return !departure.announced && facts.exposes_from > 0 &&
           departure.bytes() >= facts.exposes_from && departure.buffer.contiguous() &&
           transfer::in_host_memory(departure.location) &&
           to.endpoint.transport->exposes(departure.to);
}

// What the receiver can be expected to read of our memory: what we could read of its.
transfer::HostReads::Known reads_of(transfer::Context& context, transfer::Endpoint& to,
                                    const Departure& departure) {
    const Bytes from = departure.awaited ? plan::kAwaitedReadsFrom
                                         : plan::eager_limit(to.facts, context.tuning) + 1;
    if (departure.bytes() < from || departure.location.kind != device::MemoryKind::host ||
        !departure.buffer.contiguous())
        return {plan::Reads::not_offered, {}};
    transfer::HostReads::Known known = context.host_reads.to(to);
    // Too short to measure anything.
    if (known.reads == plan::Reads::trial && departure.bytes() < transfer::HostReads::kSample)
        known.reads = plan::Reads::unmeasured;
    return known;
}

// The receiver asked for this allocation, so that later messages from there need no copy ahead. False:
// it cannot be named after all.
bool name_what_was_asked_for(transfer::Context& context, transfer::Endpoint& to,
                             const device::Location& source) {
    if (context.exports.knows(to.rank, source.buffer_id)) return true;
    if (context.exports.name(to.rank, source).kind != device::IpcKind::none) return true;
    to.memory.refuse(source.buffer_id);
    return false;
}

// An offer of contiguous device memory follows from the allocation, the size, and what changes the epoch
// of the peer.
bool is_hinted(const Departure& departure, const plan::Question& question) {
    return departure.location.on_device() && departure.location.buffer_id != 0 &&
           question.source.contiguous && !question.synchronous && !question.sink_expected;
}

plan::SelectionCache::Hint hint_of(const transfer::Endpoint& to, const Departure& departure) {
    return {to.hint_word(), departure.location.buffer_id, departure.bytes(),
            static_cast<std::uint64_t>(plan::HintKind::offer) |
                static_cast<std::uint64_t>(departure.eager_credit) << 8};
}

}  // namespace

bool is_busy(const Messages& messages) {
    return messages.context.tuning.ipc && messages.device.pending();
}

plan::Facts facts_for_offer(transfer::Context& context, transfer::Endpoint& to,
                            const device::Location& source, bool contiguous) {
    if (source.on_device()) context.arbiter.use(source.gpu);
    plan::Facts facts = context.facts_for(to, source, true, nullptr);
    // It asked for this allocation by name, so its GPU reaches ours; whether they are one only it
    // knows. A strided buffer is packed by this process, and needs no name.
    const bool asked_for = source.buffer_id != 0 && to.memory.is_asked_for(source.buffer_id) &&
                           (!contiguous || (source.ipc != device::IpcKind::none &&
                                            name_what_was_asked_for(context, to, source)));
    facts.ipc_open = asked_for;
    // A first message is not copied ahead into slots that are dearer than opening this memory.
    facts.peer_access = asked_for || (facts.cold_slots && facts.peer_access);
    return facts;
}

plan::Selection& select_offer(Messages& messages, const Departure& departure) {
    Conversation& to = messages.with(departure.to);
    plan::Question question;
    question.bytes = departure.bytes();
    question.source = transfer::end_of(departure.location, departure.buffer);
    question.synchronous = departure.synchronous;
    question.eager_credit = departure.eager_credit;
    question.awaited = departure.awaited;
    if (to.endpoint.facts.shared_memory && !to.endpoint.facts.self)
        to.destinations.expect(departure.location, question);
    const bool hinted = is_hinted(departure, question);
    const plan::SelectionCache::Hint hint =
        hinted ? hint_of(to.endpoint, departure) : plan::SelectionCache::Hint{};
    if (hinted)
        if (plan::Selection* const known = messages.context.selections.known(hint)) return *known;
    plan::Facts facts = facts_for_offer(messages.context, to.endpoint, departure.location,
                                        question.source.contiguous);
    facts.gpu_shared = !question.source.contiguous && to.destinations.gpu_shared();
    facts.exposed = may_expose(to, departure);
    const transfer::HostReads::Known known = reads_of(messages.context, to.endpoint, departure);
    facts.reads = known.reads;
    facts.rates = known.rates;
    plan::Selection& selection = messages.context.selections.select(question, facts);
    if (facts.cold_slots && !facts.ipc_open && selection.plan().protocol == plan::Protocol::ipc)
        messages.context.pools.did_without();
    if (hinted) messages.context.selections.note(hint, selection);
    const bool may_look = known.reads == plan::Reads::measured &&
                          departure.bytes() >= transfer::HostReads::kSample &&
                          messages.context.tuning.cma_threshold == 0;
    if (!may_look || !to.endpoint.looks.is_due(selection.choice)) return selection;
    facts.reads = plan::Reads::look;
    return messages.context.selections.select(question, facts);
}

plan::Selection& select_offer_unregistered(Messages& messages, const plan::Selection& refused) {
    const plan::Question question = refused.question;
    plan::Facts facts = refused.facts;
    facts.source_reach = plan::Reach::nothing;
    return messages.context.selections.select(question, facts);
}

bool reads_device_memory_itself(const plan::Plan& offer, const Departure& departure) {
    const bool puts =
        offer.protocol == plan::Protocol::rdma ||
        (offer.protocol == plan::Protocol::pipeline && offer.source_stage == plan::Stage::direct);
    return puts && departure.location.on_device() && departure.bytes() > 0;
}

bool waits_for_an_answer(const plan::Plan& offer) {
    if (offer.protocol == plan::Protocol::eager) return false;
    return offer.protocol != plan::Protocol::pipeline || offer.ahead == 0;
}

bool copies_before_rts(const transfer::Endpoint& to, const Departure& departure,
                       const plan::Plan& offer) {
    return !to.facts.shared_memory && departure.location.on_device() &&
           departure.buffer.contiguous() && !waits_for_an_answer(offer);
}

wire::Rts make_rts(Messages& messages, const Departure& departure, const plan::Selection& offer,
                   std::uint64_t id, const wire::Envelope& envelope) {
    transfer::Context& context = messages.context;
    const transport::PeerFacts& peer = messages.endpoint(departure.to).facts;
    const device::Location& location = departure.location;
    const bool may_map = peer.shared_memory && !peer.self && context.tuning.ipc;
    wire::Rts rts{};
    rts.envelope = envelope;
    rts.send_id = id;
    rts.address = reinterpret_cast<std::uintptr_t>(departure.buffer.data());
    rts.offer = wire::encode(offer.plan());
    rts.source_kind = static_cast<std::uint8_t>(location.kind);
    rts.contiguous = departure.buffer.contiguous() ? 1 : 0;
    rts.synchronous = departure.synchronous ? 1 : 0;
    rts.measures_read = offer.choice.measures && wire::offers_read(rts.offer) ? 1 : 0;
    if (may_map && location.on_device() && location.ipc != device::IpcKind::none &&
        departure.buffer.contiguous())
        rts.handle = wire::all_ahead(rts.offer, departure.bytes())
                         ? context.exports.export_lazily(departure.to, location)
                         : context.exports.name(departure.to, location);
    // What is to be packed from there is asked for by that (Cts::direct_next).
    if (may_map && location.on_device() && !departure.buffer.contiguous())
        rts.handle.buffer_id = location.buffer_id;
    rts.source_reach = static_cast<std::uint8_t>(offer.facts.source_reach);
    rts.uses_driver = context.device.active() ? 1 : 0;
    if (rts.uses_driver != 0 && may_map) {
        rts.inbox = context.device.descriptor_inbox();
        rts.busy = is_busy(messages) ? 1 : 0;
    }
    if (location.gpu >= 0) {
        rts.gpu_used = static_cast<std::uint64_t>(context.arbiter.shared(location.gpu).used());
        rts.handle.gpu = context.device.gpu_facts(location.gpu).uuid;
    }
    return rts;
}

bool may_be_told_to_put(Messages& messages, const Departure& departure, const wire::Rts& rts) {
    if (!messages.context.tuning.mechanisms.claims || rts.handle.kind == device::IpcKind::none ||
        wire::all_ahead(rts.offer, departure.bytes()))
        return false;
    if (rts.gpu_used != 0) return true;
    return plan::gets_are_slow(messages.device.gpu_facts(departure.location.gpu));
}

bool rts_holds(Messages& messages, const Departure& departure, const plan::Selection& offer) {
    return offer.rts_template != 0 &&
           offer.rts_template == messages.with(departure.to).rts_stamp() &&
           offer.rts_source == departure.location.buffer_id &&
           messages.context.arbiter.shared(departure.location.gpu).used() == 0;
}

void remember_rts(Messages& messages, const Departure& departure, plan::Selection& offer,
                  const wire::Rts& rts) {
    const bool repeats = messages.context.tuning.mechanisms.rts_templates &&
                         departure.location.buffer_id != 0 && rts.gpu_used == 0 &&
                         rts.claims == 0 && !departure.synchronous &&
                         (rts.handle.kind != device::IpcKind::none || rts.flag_number != 0) &&
                         !offer.question.sink_expected;
    offer.rts_template = repeats ? messages.with(departure.to).rts_stamp() : 0;
    offer.rts_source = departure.location.buffer_id;
}

Status register_source(Messages& messages, Outgoing& message) {
    if (message.source.id != 0) return success();
    Result<transport::Region> region =
        messages.endpoint(message.peer)
            .transport->register_memory(
                transfer::extent_of(message.location, message.buffer.data(), message.bytes));
    if (region.ok()) message.source = *region;
    return region.status();
}

void release_source(Messages& messages, Outgoing& message) {
    if (message.source.id != 0)
        messages.endpoint(message.peer).transport->release_memory(message.source);
    message.source = {};
}

}  // namespace gantry::p2p

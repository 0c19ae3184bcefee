// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/offer.hpp"

#include "p2p/core.hpp"

#include <cstring>

namespace gantry::p2p {
namespace {

bool reads_device_memory_itself(const Outgoing& message) {
    const plan::Plan& plan = message.choice.plan;
    const bool puts =
        plan.protocol == plan::Protocol::rdma ||
        (plan.protocol == plan::Protocol::pipeline && plan.source_stage == plan::Stage::direct);
    return puts && message.location.on_device() && message.bytes > 0;
}

// A receiver that could read as well mostly does, unless this process used their GPU last or gets
// are slow here. What lies in slots already is taken from there.
bool may_be_told_to_put(Core& core, const Outgoing& message, const wire::RequestToSend& rts) {
    if (rts.handle.kind == 0 || wire::all_ahead(rts.offer, message.bytes)) return false;
    if (rts.gpu_used != 0) return true;
    return plan::gets_are_slow(core.device.gpu_facts(message.location.gpu));
}

// A false may start what lets later messages lend.
bool may_lend(Core& core, const Outgoing& message) {
    const Peer& peer = core.peer(message.peer);
    return peer.facts.lends_from > 0 && message.bytes >= peer.facts.lends_from &&
           message.buffer.contiguous() && host_memory_of(message.location) &&
           peer.transport->lends(message.peer);
}

// It asked for this allocation, so that later messages from there need no copy ahead.
void name_what_was_asked_for(Core& core, const Outgoing& message) {
    auto& asked = core.peer(message.peer).direct_buffers;
    const device::Location& source = message.location;
    if (source.ipc == device::IpcKind::none || !asked.contains(source.buffer_id) ||
        core.named.knows(message.peer, source.buffer_id))
        return;
    if (core.named.name(message.peer, source).kind == device::IpcKind::none)
        asked.erase(source.buffer_id);
}

}  // namespace

bool waits_for_an_answer(const Outgoing& message) {
    const plan::Plan& offer = message.choice.plan;
    if (offer.protocol == plan::Protocol::eager) return false;
    return offer.protocol != plan::Protocol::pipeline || offer.ahead == 0;
}

bool copies_before_it_tells(Core& core, const Outgoing& message) {
    return !core.peer(message.peer).facts.shared_memory && message.location.on_device() &&
           message.buffer.contiguous() && !waits_for_an_answer(message);
}

void make_offer(Core& core, Outgoing& message, const plan::Question& question) {
    const Peer& peer = core.peer(message.peer);
    message.question = question;
    message.busy = core.device.pending();
    name_what_was_asked_for(core, message);
    if (peer.facts.shared_memory && !peer.facts.self)
        peer.sinks.expect(message.location, message.question);
    message.facts = core.facts_for_offer(message.peer, message.location);
    message.facts.gpu_shared = !message.buffer.contiguous() && peer.sinks.gpu_shared();
    message.facts.lent = may_lend(core, message);
    message.choice = core.choose(message.question, message.facts);
    // The receiver must know for sure what our rails reach, and an offer that stages starts at
    // once.
    if (reads_device_memory_itself(message) && !register_source(core, message).ok()) {
        message.facts.source_reach = plan::Reach::nothing;
        message.choice = core.choose(message.question, message.facts);
    }
    core.explain.record(message.question, message.facts, message.choice, message.peer, false);
}

wire::RequestToSend request_to_send(Core& core, Outgoing& message, const wire::Envelope& envelope) {
    wire::RequestToSend rts{};
    rts.envelope = envelope;
    rts.send_id = message.id;
    rts.address = reinterpret_cast<std::uintptr_t>(message.buffer.data());
    rts.offer = wire::encode(message.choice.plan);
    rts.source_kind = static_cast<std::uint8_t>(message.location.kind);
    rts.contiguous = message.buffer.contiguous() ? 1 : 0;
    rts.synchronous = message.question.synchronous ? 1 : 0;
    const transport::PeerFacts& peer = core.peer(message.peer).facts;
    if (peer.shared_memory && !peer.self && core.tuning.ipc && message.location.on_device() &&
        message.location.ipc != device::IpcKind::none && message.buffer.contiguous()) {
        rts.handle = wire::encode(wire::all_ahead(rts.offer, message.bytes)
                                      ? core.named.name_later(message.peer, message.location)
                                      : core.named.name(message.peer, message.location));
    }
    rts.source_reach = static_cast<std::uint8_t>(message.facts.source_reach);
    rts.uses_driver = core.device.active() ? 1 : 0;
    if (rts.uses_driver != 0 && peer.shared_memory && !peer.self && core.tuning.ipc) {
        rts.inbox = core.device.descriptor_inbox();
        rts.busy = message.busy ? 1 : 0;
    }
    if (message.location.gpu >= 0) {
        rts.gpu_used = static_cast<std::uint64_t>(core.shared_gpu(message.location.gpu).used());
        std::memcpy(rts.handle.gpu, core.device.gpu_facts(message.location.gpu).uuid.data(),
                    sizeof rts.handle.gpu);
    }
    if (may_be_told_to_put(core, message, rts)) rts.claims = core.name_claim(message) ? 1 : 0;
    return rts;
}

}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
//
// The start of every send. The envelope enters the peer's queue here, in program order, before
// anything is awaited. The ways that a message may take, first to last:
//
//   small host message    with its envelope: no coroutine, no question to the planner
//   through a BAR mapping  the processor reads device memory and sends it like a host message
//   put after RTR         the receiver said where its bytes go: the copy starts at once
//   by flags              pieces go to slots at once, and flags tell of them
//   awaiting its FIN      the receiver reads, and the RTS repeats the template: no record but the request
//   anything else         an Outgoing, and a coroutine when there is something to do
#include "p2p/send.hpp"

#include "p2p/bar_copies.hpp"
#include "p2p/eager.hpp"
#include "p2p/offer.hpp"
#include "p2p/protocols/flagged_message.hpp"
#include "p2p/protocols/put_after_rtr.hpp"

namespace gantry::p2p {
namespace {

// `leave(envelope, payload)` sends it.
template <class Leave>
Result<bool> send_eager(Messages& messages, Conversation& to, const Group& group,
                        const Buffer& buffer, const device::Location& location, int tag,
                        const Leave& leave) {
    const int rank = to.endpoint.rank;
    const Bytes bytes = buffer.bytes();
    auto payload = payload_of(buffer);
    if (!payload.ok()) return payload.status();
    const wire::Envelope envelope{group.context, group.source_number(group.rank), tag,
                                  to.sequence.take_number(), bytes};
    Status sent = leave(envelope, payload->bytes);
    if (!sent.ok()) [[unlikely]] {
        to.sequence.roll_back();
        return sent;
    }
    to.eager_outstanding += bytes;
    if (messages.timeline != nullptr) [[unlikely]]
        messages.timeline->sent(nullptr, rank, tag, envelope.sequence, bytes);
    if (plan::Explain* const ledger = messages.explain.ledger()) [[unlikely]]
        ledger->record(select_offer(messages, {.to = rank,
                                               .buffer = buffer,
                                               .location = location,
                                               .synchronous = false,
                                               .eager_credit = true}),
                       rank, false);
    return true;
}

// A synchronous eager message: complete when the receiver says that it was matched.
Task<Status> await_match(Executor& executor, Messages& messages, Outgoing& message) {
    Status status = co_await message.finished;
    if (message.withdrawn != nullptr)
        status = co_await settle_cancel(executor, message, std::move(status));
    Request& request = *message.request;
    messages.remove(message);
    messages.finish_request(request, status);
    co_return success();
}

// Of a message that could be sent at once; null: it is better sent so.
plan::Selection* offer_to_be_read(Messages& messages, int to, const Buffer& buffer,
                                  const device::Location& location) {
    const transport::PeerFacts& facts = messages.endpoint(to).facts;
    if (!facts.shared_memory || facts.self) return nullptr;
    plan::Selection& offer = select_offer(messages, {.to = to,
                                                     .buffer = buffer,
                                                     .location = location,
                                                     .synchronous = false,
                                                     .eager_credit = true,
                                                     .awaited = true});
    return wire::offers_read(offer.plan()) ? &offer : nullptr;
}

Outgoing& record_of(Messages& messages, const Departure& departure, Request& request,
                    const plan::Selection& offer) {
    Outgoing& message = messages.outgoing.add(departure.to);
    message.request = &request;
    message.buffer = departure.buffer;
    message.location = departure.location;
    message.bytes = departure.bytes();
    message.synchronous = departure.synchronous;
    message.offer = offer.plan();
    return message;
}

// Everything is said: the receiver reads, and its FIN ends the request.
Result<bool> send_awaiting_fin(Messages& messages, const Departure& departure, const Group& group,
                               int tag, Request& request) {
    const std::uint64_t id = messages.outgoing.next_id();
    const wire::RtsFromTemplate rts{
        messages.next_envelope(group, departure.to, tag, departure.bytes(), &request), id,
        reinterpret_cast<std::uintptr_t>(departure.buffer.data())};
    Status sent = messages.send_envelope(departure.to, wire::kRtsFromTemplate, rts);
    if (!sent.ok()) {
        messages.with(departure.to).sequence.roll_back();
        return sent;
    }
    messages.outgoing.await_fin(id, request);
    messages.hold_memory(request);
    return false;
}

// With its envelope, and complete when the receiver has matched it.
Status send_synchronous(Messages& messages, Outgoing& message, const wire::Envelope& envelope) {
    auto payload = payload_of(message.buffer);
    if (!payload.ok()) return payload.status();
    GANTRY_TRY(messages.send_envelope(message.peer, wire::kEagerSynchronous,
                                      wire::EagerSynchronous{envelope, message.id},
                                      payload->bytes));
    message.running = true;
    messages.context.operations.spawn(await_match(messages.executor, messages, message));
    return success();
}

// By an RTS. `started` says whether its coroutine had to start before: the message may be over, and
// gone.
Status send_by_rts(Messages& messages, const Departure& departure, plan::Selection& offer,
                   Outgoing& message, const wire::Envelope& envelope, bool& started) {
    transfer::Endpoint& to = messages.endpoint(departure.to);
    const std::uint64_t id = message.id;
    const bool eager = offer.plan().protocol == plan::Protocol::eager;
    wire::Rts rts = make_rts(messages, departure, offer, id, envelope);
    if (may_be_told_to_put(messages, departure, rts)) {
        message.claimable = messages.context.arbiter.name_claim(to, id);
        rts.claims = message.claimable ? 1 : 0;
    }
    message.exposed = wire::exposes(rts.offer);
    started = copies_before_rts(to, departure, offer.plan());
    if (started) messages.start(message);
    if (started && eager && !departure.synchronous && messages.outgoing.find(id) != nullptr)
        // The payload follows by itself, and may travel with its RTS.
        return messages.send_envelope_by(
            wire::kRts, rts, [&to](wire::Kind kind, transport::ConstSpan header) {
                return to.transport->send_with_next(to.rank, kind, header, {});
            });
    if (!started && message.exposed)
        return messages.send_envelope_by(
            wire::kRts, rts, [&](wire::Kind kind, transport::ConstSpan header) {
                return to.transport->expose(to.rank, kind, header, id, departure.buffer.data(),
                                            departure.bytes(), message.got);
            });
    GANTRY_TRY(messages.send_rts(departure.to, rts));
    if (!started && wire::expects_get(rts.offer)) remember_rts(messages, departure, offer, rts);
    return success();
}

}  // namespace

Result<bool> start_send(Messages& messages, const Group& group, const Buffer& buffer,
                        const device::Location& location, int destination, int tag, SendMode mode,
                        Request*& request, bool waits) {
    const int to = group.peer(destination);
    Conversation& peer = messages.with(to);
    const Bytes bytes = buffer.bytes();
    const bool synchronous = mode == SendMode::synchronous;
    const bool credit_left = peer.eager_outstanding + bytes <= messages.context.config.eager_budget;
    plan::Selection* offer = nullptr;
    const bool may_be_eager = !synchronous && credit_left && transfer::in_host_memory(location);
    if (may_be_eager) {
        if (mode == SendMode::awaited && bytes >= plan::kAwaitedReadsFrom &&
            bytes <= peer.eager_limit)
            offer = offer_to_be_read(messages, to, buffer, location);
        if (offer == nullptr && bytes < peer.plain_below)
            return send_eager(
                messages, peer, group, buffer, location, tag,
                [&peer, to](const wire::Envelope& envelope, transport::ConstSpan payload) {
                    return peer.endpoint.transport->send(to, wire::kEager, wire::bytes_of(envelope),
                                                         payload);
                });
    }
    const Messages::SaysSignature says(messages, group, buffer);
    if (messages.signatures != nullptr && offer == nullptr && may_be_eager &&
        bytes <= peer.eager_limit) [[unlikely]]
        return send_eager(
            messages, peer, group, buffer, location, tag,
            [&messages, to](const wire::Envelope& envelope, transport::ConstSpan payload) {
                return messages.send_envelope(to, wire::kEager, envelope, payload);
            });
    if (!synchronous && credit_left) {
        Result<bool> read = send_by_bar(messages, group, buffer, location, to, tag);
        if (!read.ok() || *read) return read;
    }
    // A sender that goes on to compute would tell the end of its put late; a get needs nobody.
    if (waits && location.on_device() && buffer.contiguous()) {
        if (put_after_rtr(messages, group, buffer, location, to, tag, request)) return false;
        if (!peer.endpoint.lost.ok()) return peer.endpoint.lost;
    }

    if (request == nullptr) request = messages.requests.create();
    if (request == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    request->buffer = buffer;
    request->location = location;
    request->peer = to;
    const Departure departure{.to = to,
                              .buffer = buffer,
                              .location = location,
                              .synchronous = synchronous,
                              .eager_credit = credit_left,
                              .awaited = mode == SendMode::awaited};
    if (offer == nullptr) offer = &select_offer(messages, departure);
    if (send_by_flags(messages, departure, *offer, group, tag, *request)) {
        messages.explain.record(*offer, to, false);
        return false;
    }
    if (wire::expects_get(offer->plan()) && rts_holds(messages, departure, *offer) &&
        messages.outgoing.may_await_fin()) {
        messages.explain.record(*offer, to, false);
        return send_awaiting_fin(messages, departure, group, tag, *request);
    }

    Outgoing& message = record_of(messages, departure, *request, *offer);
    const std::uint64_t id = message.id;
    // The receiver must know for sure what our rails reach, and an offer that stages starts at once.
    if (reads_device_memory_itself(offer->plan(), departure) &&
        !register_source(messages, message).ok()) {
        offer = &select_offer_unregistered(messages, *offer);
        message.offer = offer->plan();
    }
    messages.explain.record(*offer, to, false);
    const bool eager = offer->plan().protocol == plan::Protocol::eager;
    const wire::Envelope envelope = messages.next_envelope(group, to, tag, bytes, request);
    bool started = false;
    const bool at_once = eager && transfer::in_host_memory(location);
    Status sent = at_once ? send_synchronous(messages, message, envelope)
                          : send_by_rts(messages, departure, *offer, message, envelope, started);
    if (!sent.ok()) {
        peer.sequence.roll_back();
        Outgoing* const unsent = messages.outgoing.find(id);
        if (started) {
            if (unsent != nullptr) messages.end_early(*unsent, sent);
            return false;
        }
        release_source(messages, message);
        messages.remove(message);
        return sent;
    }
    if (eager) peer.eager_outstanding += bytes;
    if (!at_once && !started && (message.exposed || !waits_for_an_answer(message.offer)))
        messages.start(message);
    return false;
}

}  // namespace gantry::p2p

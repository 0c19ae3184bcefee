// SPDX-License-Identifier: BSD-3-Clause
//
// What arrives from peers. Envelopes are taken in their sender's sequence; everything else concerns a
// message already known by its id, or (early parts of a message over a network that reorders) one whose
// RTS is still to come.
#include "p2p/messages.hpp"

#include "base/log.hpp"
#include "p2p/protocols/flagged_message.hpp"
#include "p2p/eager.hpp"
#include "p2p/rendezvous_receive.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::p2p {

template <wire::Kind kind>
void Messages::on_envelope(int from, transport::ConstSpan header, transport::ConstSpan payload) {
    Conversation& sender = with(from);
    sender.read_by_bar = 0;
    sender.sequence.arrive(
        kind, header, payload,
        [this, &sender](transport::MessageKind of, transport::ConstSpan its_header,
                        transport::ConstSpan its_payload) {
            take_envelope(sender, of, its_header, its_payload);
        });
}

// A message whose header is one struct.
template <transport::MessageKind kind, class Header, auto Method, Messages::Order order>
void Messages::on_header(int from, transport::ConstSpan header, transport::ConstSpan payload) {
    Conversation& sender = with(from);
    sender.read_by_bar = 0;
    const auto read = wire::read<Header>(header);
    if constexpr (order == Order::follower)
        if (wire::may_follow(read) &&
            sender.sequence.park_follower(read.send_id, kind, header, payload))
            return;
    (this->*Method)(from, read, payload);
}

template <transport::MessageKind kind, class Header, auto Method, Messages::Order order>
void Messages::handle() {
    context.messages.handle<&Messages::on_header<kind, Header, Method, order>>(kind, *this);
}

void Messages::register_handlers() {
    transfer::ActiveMessages& messages = context.messages;
    messages.handle<&Messages::on_envelope<wire::kEager>>(wire::kEager, *this);
    messages.handle<&Messages::on_envelope<wire::kEagerSynchronous>>(wire::kEagerSynchronous,
                                                                     *this);
    messages.handle<&Messages::on_envelope<wire::kRts>>(wire::kRts, *this);
    messages.handle<&Messages::on_envelope<wire::kRtsFromTemplate>>(wire::kRtsFromTemplate, *this);
    messages.handle<&Messages::on_envelope<wire::kRtsOtherBuffer>>(wire::kRtsOtherBuffer, *this);
    messages.handle<&Messages::on_envelope<wire::kPutRequest>>(wire::kPutRequest, *this);
    messages.handle<&Messages::on_envelope<wire::kSigned>>(wire::kSigned, *this);
    handle<wire::kCts, wire::Cts, &Messages::on_cts>();
    handle<wire::kChunk, wire::Chunk, &Messages::on_chunk, Order::follower>();
    handle<wire::kCredit, wire::Credit, &Messages::on_credit>();
    handle<wire::kFin, wire::Fin, &Messages::on_fin, Order::follower>();
    handle<wire::kFins, wire::Fins, &Messages::on_fins>();
    handle<wire::kPayload, wire::Payload, &Messages::on_payload, Order::follower>();
    handle<wire::kEagerCredit, wire::EagerCredit, &Messages::on_eager_credit>();
    handle<wire::kForget, wire::Forget, &Messages::on_forget>();
    handle<wire::kRtr, wire::Rtr, &Messages::on_rtr>();
    handle<wire::kRtrSameBuffer, wire::RtrSameBuffer, &Messages::on_rtr_same_buffer>();
    handle<wire::kCancel, wire::Cancel, &Messages::on_cancel, Order::follower>();
    handle<wire::kCancelled, wire::Cancelled, &Messages::on_cancelled>();
    messages.handle<&Messages::on_reason>(kReason, *this);
    messages.tell_of_losses<&Messages::on_peer_lost>(*this);
}

void Messages::take_envelope(Conversation& sender, transport::MessageKind kind,
                             transport::ConstSpan header, transport::ConstSpan payload) {
    const int from = sender.endpoint.rank;
    switch (kind) {
        case wire::kRts: return on_rts(from, wire::read<wire::Rts>(header));
        case wire::kRtsFromTemplate:
            return take_rts(from, sender.rts_received, wire::read<wire::RtsFromTemplate>(header));
        case wire::kRtsOtherBuffer:
            return on_rts_other_buffer(from, wire::read<wire::RtsOtherBuffer>(header));
        case wire::kPutRequest: return on_put_request(from, wire::read<wire::PutRequest>(header));
        case wire::kSigned: return take_signed(sender, header, payload);
        default: return on_eager(sender, kind, header, payload);
    }
}

// What is found is said to the receive before anything of the message is: it may be over at once.
void Messages::take_signed(Conversation& sender, transport::ConstSpan header,
                           transport::ConstSpan payload) {
    const auto behind = wire::read<wire::Signed>(header.last(sizeof(wire::Signed)));
    wire::Envelope envelope;
    std::memcpy(&envelope, header.data(), sizeof envelope);
    Request* const receive = matcher.first_for(envelope);
    if (receive != nullptr) compare(behind.signature, envelope, *receive);
    take_envelope(sender, behind.kind, header.first(header.size() - sizeof behind), payload);
    if (receive != nullptr) return;
    if (Incoming* const kept = matcher.kept(envelope))
        kept->signature = std::make_unique<layout::Signature>(behind.signature);
}

void Messages::compare(const layout::Signature& sent, const wire::Envelope& envelope,
                       Request& receive) const {
    if (signatures != nullptr)
        receive.status = signatures->compare(sent, envelope.bytes, envelope.source, receive.buffer);
}

void Messages::take_followers(int from, std::uint64_t send_id) {
    for (const Sequencer::Parked& follower : with(from).sequence.take_followers(send_id))
        context.messages.on_message(from, follower.kind, follower.header, follower.payload);
}

void Messages::deliver(std::unique_ptr<Incoming> message, Request& receive) {
    if (!message->failure.ok()) {
        receive.outcome = {message->envelope.source, message->envelope.tag, 0, false};
        give_back(*message);
        if (message->rendezvous) incoming.remove(message->peer, message->rts.send_id);
        finish_request(receive, message->failure);
        return;
    }
    if (!message->rendezvous) {
        deliver_eager(message->envelope, with(message->peer), message->synchronous_id,
                      {message->payload.data(), message->envelope.bytes}, receive);
        return;
    }
    Incoming& reference = *message;
    reference.rts.take_at_its_word();
    reference.request = &receive;
    receive.outcome = {reference.envelope.source, reference.envelope.tag,
                       std::min<Bytes>(reference.envelope.bytes, receive.buffer.bytes()), false};
    if (reference.envelope.bytes > receive.buffer.bytes())
        receive.status = truncated(receive, reference.envelope.bytes);
    incoming.add_matched(std::move(message));
    context.operations.spawn(receive_rendezvous(executor, *this, reference));
}

void Messages::deliver_late(std::unique_ptr<Incoming> message, Request& receive) {
    if (message->signature != nullptr) [[unlikely]]
        compare(*message->signature, message->envelope, receive);
    if (timeline != nullptr) [[unlikely]]
        timeline->matched(&receive, message->peer, message->envelope.tag,
                          message->envelope.sequence, message->envelope.bytes);
    // A message by flags of which pieces have been told is taken piece by piece.
    const bool whole = message->rendezvous && message->failure.ok() && message->arrived.empty();
    const wire::RtsFromTemplate own = message->rts.own();
    const int from = message->peer;
    if (!whole || !deliver_at_once(from, message->rts, own, receive, true, message->verdict))
        return deliver(std::move(message), receive);
    incoming.remove(from, own.send_id);
}

void Messages::on_chunk(int from, const wire::Chunk& chunk, transport::ConstSpan) {
    if (chunk.pool == wire::kInPlace && end_of_put(from, chunk.send_id, success())) return;
    Incoming* message = incoming.find(from, chunk.send_id);
    if (message != nullptr && !message->discard_chunks) {
        message->arrived.push(chunk);
        return;
    }
    // Copied ahead of a verdict that does not need it, or past the room of a truncated receive: the
    // slot goes back.
    Status sent = send(from, wire::kCredit, wire::credit_for(chunk));
    if (!sent.ok()) log::error("a staging slot of rank {} was not returned: {}", from, sent.text());
}

int Messages::take_raised_flags() {
    int taken = 0;
    std::size_t at = 0;
    for (; const auto raised = context.flags.awaited.next_raised(at); ++taken) {
        if (raised->waiter != nullptr)
            take_raised(*raised);
        else
            on_chunk(raised->from, raised->chunk);
    }
    return taken;
}

void Messages::on_credit(int from, const wire::Credit& credit, transport::ConstSpan) {
    if (!lost(from).ok()) return;  // everything that it held has been taken back
    if (credit.units != 0)
        context.pools.release(static_cast<transport::Pool>(credit.pool), credit.unit, credit.units);
    Outgoing* const message = outgoing.find(credit.send_id);
    if (message != nullptr) message->grants.push(credit.unit);
}

void Messages::on_cts(int from, const wire::Cts& cts, transport::ConstSpan payload) {
    Conversation& receiver = with(from);
    const plan::Plan verdict = wire::decode(cts.verdict);
    if (cts.direct_next != 0) receiver.endpoint.memory.ask_for(cts.direct_next);
    if (cts.inbox != 0) context.exports.send_descriptor(cts.wanted, cts.inbox);
    if (cts.cannot_read != 0) receiver.endpoint.refuses_reads = true;
    receiver.destinations.learn_strided(verdict);
    Outgoing* message = outgoing.find(cts.send_id);
    const Request* const sent = send_by_flags_of(*this, cts.send_id);
    if (cts.send_id == receiver.last_id_by_flags) receiver.last_was_answered = true;
    if (message == nullptr && sent == nullptr) return;  // it all left ahead of the verdict
    const device::Location& source = sent != nullptr ? sent->location : message->location;
    const Bytes bytes = sent != nullptr ? sent->buffer.bytes() : message->bytes;
    if (cts.direct_next != 0)  // taken from slots only because it lay there already
        receiver.destinations.learn_read(source);
    else
        receiver.destinations.learn(source, bytes, verdict);
    if (sent != nullptr) return;
    if (cts.key_bytes > std::min<Bytes>(payload.size(), transport::RemoteKey::kLongest)) {
        log::error("rank {} sent a verdict with a key of {} bytes", from, cts.key_bytes);
        return;
    }
    if (cts.key_bytes != 0) message->key = transport::RemoteKey(payload.first(cts.key_bytes));
    for (std::size_t at = cts.key_bytes; at + sizeof(std::uint32_t) <= payload.size();
         at += sizeof(std::uint32_t)) {
        std::uint32_t unit;
        std::memcpy(&unit, payload.data() + at, sizeof unit);
        message->grants.push(unit);
    }
    end_exposure(*message, failure(MPI_ERR_PENDING, "the receiver wants the message another way"));
    message->answers.push(cts);
    start(*message);
}

void Messages::on_fins(int from, const wire::Fins& fins, transport::ConstSpan payload) {
    for (std::size_t i = 0; i < fins.count && (i + 1) * sizeof(std::uint64_t) <= payload.size();
         ++i) {
        wire::Fin fin{0, MPI_SUCCESS, wire::For::sender};
        std::memcpy(&fin.send_id, payload.data() + i * sizeof fin.send_id, sizeof fin.send_id);
        on_fin(from, fin, {});
    }
}

void Messages::on_fin(int from, const wire::Fin& fin, transport::ConstSpan payload) {
    Status status;
    if (fin.error_class != MPI_SUCCESS)
        status = Status::make(
            fin.error_class,
            fmt::format(
                "rank {} reports: {}", from,
                std::string_view(reinterpret_cast<const char*>(payload.data()), payload.size())));
    if (fin.target == wire::For::sender) return on_fin_at_sender(from, fin, status);
    if (!status.ok()) {
        // What lies in slots goes back; nobody raises the other flags.
        take_raised_flags();
        context.flags.awaited.drop(from, fin.send_id);
        fail_receives_by_flags(*this, from, fin.send_id, status);
        if (end_of_put(from, fin.send_id, status)) return;
    }
    Incoming* message = incoming.find(from, fin.send_id);
    if (message == nullptr) return;
    if (!status.ok()) message->arrived.close(status);
    if (message->request == nullptr) message->failure = status;
    if (!message->finished.done()) message->finished.complete(status);
}

void Messages::on_fin_at_sender(int from, const wire::Fin& fin, const Status& status) {
    Conversation& receiver = with(from);
    if (Request* const read = status.ok() ? outgoing.take_awaiting(fin.send_id) : nullptr) {
        receiver.destinations.learn_read(read->location);
        finish_request(*read, status);
        return;
    }
    Outgoing* message = outgoing.find(fin.send_id);
    if (message == nullptr) {
        if (status.ok() || fail_send_by_flags(*this, fin.send_id, status)) return;
        // Already complete here, and the receiver gave up: it waits to hear that nothing of us is in
        // flight.
        Status sent =
            send(from, wire::kFin, wire::Fin{fin.send_id, MPI_ERR_OTHER, wire::For::receiver});
        if (!sent.ok())
            log::error("an abort by rank {} was not acknowledged: {}", from, sent.text());
        return;
    }
    if (status.ok()) receiver.destinations.learn_read(message->location);
    if (status.ok() && !message->running) {  // it waited for nothing else
        Request& request = *message->request;
        remove(*message);
        finish_request(request, status);
        return;
    }
    if (!status.ok()) {
        end_early(*message, status);
    } else {
        // The receiver has copied what we offered: its verdict, and the end, in one message.
        wire::Cts verdict{};
        verdict.send_id = fin.send_id;
        verdict.verdict = wire::encode(message->offer);
        verdict.accepted = message->bytes;
        message->answers.push(verdict);
    }
    if (!message->finished.done()) message->finished.complete(status);
    start(*message);
}

void Messages::on_forget(int from, const wire::Forget& forget, transport::ConstSpan) {
    with(from).rtr.forget(forget.buffer_id);
    device::Uuid gpu{};
    std::memcpy(gpu.data(), forget.gpu, sizeof forget.gpu);
    device.forget_memory(forget.buffer_id, gpu);
}

}  // namespace gantry::p2p

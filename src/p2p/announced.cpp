// SPDX-License-Identifier: BSD-3-Clause
//
// Announced messages: a rendezvous without envelope and matching. The RTS travels inside a message of
// another layer, which says where the bytes go; from there on it is a rendezvous like any other.
//
//   sender                                              receiver
//   announce      == the layer's message, with the RTS ==>  take_announced, then ireceive_matched or refuse
//   rendezvous_send.cpp  <== verdict, pieces, FIN ==>  rendezvous_receive.cpp
//
// Their ids are numbered apart, so that what follows an RTS is parked until the layer has taken that.
#include "p2p/messages.hpp"

#include "p2p/offer.hpp"

namespace gantry::p2p {

Result<Request*> Messages::announce(int to, const Buffer& buffer, const device::Location& location,
                                    const SendAnnouncement& send) {
    if (!lost(to).ok()) return lost(to);
    Request* const request = requests.create();
    if (request == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    request->buffer = buffer;
    request->location = location;
    request->peer = to;
    constexpr bool kSynchronous = false, kEagerCredit = false, kIsAnnounced = true;
    const Departure departure{to, buffer, location, kSynchronous, kEagerCredit, kIsAnnounced};
    plan::Selection* offer = &select_offer(*this, departure);
    Outgoing& message = outgoing.add_announced(to);
    const std::uint64_t id = message.id;
    message.request = request;
    message.buffer = buffer;
    message.location = location;
    message.bytes = departure.bytes();
    message.offer = offer->plan();
    if (reads_device_memory_itself(offer->plan(), departure) &&
        !register_source(*this, message).ok()) {
        offer = &select_offer_unregistered(*this, *offer);
        message.offer = offer->plan();
    }
    explain.record(*offer, to, false);
    wire::Envelope envelope{};
    envelope.bytes = departure.bytes();
    const wire::Rts rts = make_rts(*this, departure, *offer, id, envelope);
    const bool started = copies_before_rts(endpoint(to), departure, offer->plan());
    if (started) start(message);
    Status sent = send(rts);
    if (!sent.ok()) {
        Outgoing* const unsent = outgoing.find(id);
        if (started) {
            if (unsent != nullptr) end_early(*unsent, sent);
            return request;
        }
        release_source(*this, message);
        remove(message);
        requests.destroy(request);
        return sent;
    }
    if (!started && !waits_for_an_answer(message.offer)) start(message);
    return request;
}

std::unique_ptr<Incoming> Messages::take_announced(int from, const wire::Rts& rts) {
    auto message = std::make_unique<Incoming>(executor);
    message->rts = rts;
    message->envelope = rts.envelope;
    message->peer = from;
    message->rendezvous = true;
    message->failure = lost(from);
    incoming.add_unexpected(*message);
    with(from).sequence.rts_taken(rts.send_id);
    take_followers(from, rts.send_id);
    return message;
}

void Messages::refuse(std::unique_ptr<Incoming> message, const Status& why) {
    const int from = message->peer;
    const std::uint64_t id = message->rts.send_id;
    message->failure = why;
    give_back(*message);
    incoming.remove(from, id);
    tell_failure(*this, from, id, why, wire::For::sender);
}

Result<Request*> Messenger::announce(int to, const Buffer& buffer, const device::Location& location,
                                     const SendAnnouncement& send) {
    return messages_->announce(to, buffer, location, send);
}

Matched Messenger::take_announced(int from, const wire::Rts& rts) {
    return {messages_->take_announced(from, rts).release(), Outcome{.bytes = rts.envelope.bytes}};
}

void Messenger::refuse(Matched announced, const Status& why) {
    messages_->refuse(std::unique_ptr<Incoming>(announced.message), why);
}

}  // namespace gantry::p2p

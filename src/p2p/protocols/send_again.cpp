// SPDX-License-Identifier: BSD-3-Clause
//
// The short way of a device message that the receiver is expected to read, when the last such
// message to it was of the same allocation and size: the offer and the request to send are that
// one's, and nothing is kept but the request itself (unread.hpp). Where the buffer lies was
// asked as always. get_again.cpp is the other end.
#include "p2p/core.hpp"

namespace gantry::p2p {
namespace {

// Behind another request to that rank that says more the receiver would repeat the wrong one.
bool like_the_last(Core& core, const Peer& peer, const Request& send, Bytes bytes, bool in_budget) {
    const Peer::Offer& last = peer.last_offer;
    return last.source == send.location.buffer_id && last.source != 0 &&
           last.question.bytes == bytes && last.question.source.ipc == send.location.ipc &&
           last.question.budget == in_budget && last.request_version == peer.request_version &&
           send.buffer.contiguous() && !core.explain.on() &&
           core.shared_gpu(send.location.gpu).used() == 0;
}

}  // namespace

Result<bool> send_again(Core& core, const Group& group, int tag, bool in_budget, Request& send) {
    const Bytes bytes = send.buffer.bytes();
    if (!like_the_last(core, core.peer(send.peer), send, bytes, in_budget) ||
        !core.has_room_for_unread())
        return false;
    Status sent = core.send_unread(send, core.next_envelope(group, send.peer, tag, bytes));
    if (!sent.ok()) {
        core.take_back_envelope(send.peer);
        return sent;
    }
    return true;
}

// A window of device messages is made of one offer: the planner and the driver need not be asked
// for each. Messages made of the offer before become whole: they have no other record of it.
void remember_offer(Core& core, const Outgoing& message, const wire::RequestToSend& rts) {
    Peer& peer = core.peer(message.peer);
    if (!wire::expects_get(rts.offer) || rts.handle.kind == 0 || rts.gpu_used != 0 ||
        rts.claims != 0 || !message.facts.ipc_open || message.question.synchronous ||
        message.question.sink_expected)
        return;
    core.make_whole(message.peer);
    peer.last_offer = {message.location.buffer_id, peer.request_version, message.question,
                       message.facts, message.choice};
}

}  // namespace gantry::p2p

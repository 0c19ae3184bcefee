// SPDX-License-Identifier: BSD-3-Clause
//
// Requests to send of device memory within a node, where most of a request is what names the memory.
// Programs repeat themselves, so each says no more than what differs from the last one:
//
//   whole       anything about it is new                                        four cache lines
//   elsewhere   only the allocation, of the same size and not named in full     one
//   again       nothing but what is each message's own                          one
#include "p2p/core.hpp"

#include <cstring>
#include <utility>

namespace gantry::p2p {
namespace {

bool can_be_repeated(const wire::RequestToSend& rts) {
    return rts.handle.kind != 0 || rts.flag_number != 0;
}

bool same(const wire::RequestToSend& one, const wire::RequestToSend& other) {
    return std::memcmp(&one, &other, sizeof one) == 0;
}

}  // namespace

Status Core::request(int to, const wire::RequestToSend& rts) {
    if (!can_be_repeated(rts)) return send(to, wire::kRequestToSend, rts);
    wire::RequestToSend rest = rts;
    rest.set_own({});
    wire::RequestToSend& last = peer(to).request_sent;
    if (same(rest, last)) return send(to, wire::kRequestAgain, rts.own());
    const std::uint64_t allocation = std::exchange(rest.handle.buffer_id, last.handle.buffer_id);
    const bool elsewhere = same(rest, last);
    Status sent =
        elsewhere ? send(to, wire::kRequestElsewhere, wire::RequestElsewhere{rts.own(), allocation})
                  : send(to, wire::kRequestToSend, rts);
    if (!sent.ok()) return sent;
    if (!elsewhere) std::memcpy(&last, &rest, sizeof last);
    last.handle.buffer_id = allocation;
    ++peer(to).request_version;
    return sent;
}

void Core::on_request_to_send(int from, const wire::RequestToSend& rts) {
    if (can_be_repeated(rts)) peer(from).request_received = rts;
    take_request(from, rts, rts.own());
}

void Core::on_request_elsewhere(int from, const wire::RequestElsewhere& request) {
    peer(from).request_received.handle.buffer_id = request.buffer_id;
    on_request_again(from, request.again);
}

void Core::on_request_again(int from, const wire::RequestAgain& again) {
    take_request(from, peer(from).request_received, again);
}

// `whole` says what `own` does not.
void Core::take_request(int from, const wire::RequestToSend& whole, const wire::RequestAgain& own) {
    peer(from).last_rendezvous = own.send_id;
    Request* receive = matcher.arrive(own.envelope);
    // Others may come in the same turn, whose end is near.
    if (receive != nullptr &&
        get_again(*this, from, whole, own, *receive, device::Company::expected)) {
        gets_wait_ = true;
    } else if (receive == nullptr || !take_flagged(*this, from, whole, own, *receive)) {
        wire::RequestToSend rts = whole;
        rts.set_own(own);
        keep_or_deliver(from, rts, receive);
    }
    take_early_followers(from, own.send_id);
}

}  // namespace gantry::p2p

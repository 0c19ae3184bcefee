// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of messages under way when nothing more comes for them, or from their peer at all:
// each ends with the reason, and what that peer held of ours is ours again.
#include "p2p/messages.hpp"
#include "p2p/protocols/flagged_message.hpp"

namespace gantry::p2p {

void Messages::end_early(Outgoing& message, const Status& why) {
    end_exposure(message, why);
    message.answers.close(why);
    message.grants.close(why);
    if (!message.finished.done()) message.finished.complete(why);
    if (message.withdrawn != nullptr && !message.withdrawn->done())
        message.withdrawn->complete(why);
}

void Messages::on_peer_lost(int peer, const Status& why) {
    Status& gone = endpoint(peer).lost;
    if (!gone.ok()) return;
    // What lies there counts, as messages that it sent before do.
    take_raised_flags();
    context.flags.awaited.drop(peer);
    gone = why.ok() ? failure(MPI_ERR_OTHER, "rank {} is gone", peer) : why;
    losses.push_back(peer);
    fail_receives_by_flags(*this, peer, {}, gone);
    for (Request* receive : matcher.withdraw_from(peer))
        finish_request(*receive, gone);
    const auto waits_in_vain = [this](const Request& receive) {
        return !nothing_comes(*receive.group, MPI_ANY_SOURCE).ok();
    };
    for (Request* receive : matcher.withdraw_any(waits_in_vain))
        finish_request(*receive, gone);
    matcher.each_any([this](Request& receive) { pend_if_unacknowledged(receive); });
    outgoing.materialize(peer);
    outgoing.each([&](Outgoing& message) {
        if (message.peer == peer) end_early(message, gone);
    });
    end_of_put(peer, with(peer).rtr.coming_id, gone);
    context.give_up(peer);
    start_all(peer);
    incoming.each_from(peer, [&gone](Incoming& message) {
        message.failure = gone;
        message.arrived.close(gone);
        if (!message.finished.done()) message.finished.complete(gone);
    });
}

bool Messages::is_quiet(int peer) {
    if (conversations_[static_cast<std::size_t>(peer)] == nullptr) return true;
    if (!with(peer).fins.empty()) return false;
    bool quiet = true;
    // A send whose request was freed may still wait for its answer.
    start_all(peer);
    outgoing.each([&](const Outgoing& message) { quiet = quiet && message.peer != peer; });
    incoming.each_from(peer, [&quiet](const Incoming&) { quiet = false; });
    return quiet;
}

void Messages::forget(int peer) {
    conversations_[static_cast<std::size_t>(peer)].reset();
    context.forget(peer);
}

void Messages::give_back(Incoming& message) {
    const int from = message.peer;
    if (!lost(from).ok()) return;
    message.discard_chunks = true;
    while (!message.arrived.empty())
        on_chunk(from, message.arrived.pop());
    if (!message.rendezvous || wire::is_eager(message.rts.offer))
        consumed_eager(with(from), message.envelope.bytes);
    if (message.synchronous_id != 0)
        tell_failure(*this, from, message.synchronous_id, message.failure, wire::For::sender);
}

}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of messages under way when nothing more comes for them, or from their peer at all:
// each ends with the reason, and what was lent to that peer is ours again.
#include "base/log.hpp"
#include "p2p/protocols/stage.hpp"

namespace gantry::p2p {

void Core::end_early(Outgoing& message, const Status& why) {
    end_loan(message, why);
    message.answers.close(why);
    message.grants.close(why);
    if (!message.finished.done()) message.finished.complete(why);
}

void Core::on_peer_lost(int lost, const Status& why) {
    Peer& gone = peer(lost);
    if (!gone.lost.ok()) return;
    // What lies there counts, as messages that it sent before do.
    take_raised_flags();
    flagged.awaited.drop(lost);
    gone.lost = why.ok() ? failure(MPI_ERR_OTHER, "rank {} is gone", lost) : why;
    fail_flagged_receives(*this, lost, {}, gone.lost);
    for (Request* receive : matcher.withdraw_from(lost))
        finish_request(*receive, gone.lost);
    const auto waits_in_vain = [this](const Request& receive) {
        return !nothing_comes(*receive.group, MPI_ANY_SOURCE).ok();
    };
    for (Request* receive : matcher.withdraw_any(waits_in_vain))
        finish_request(*receive, gone.lost);
    make_whole(lost);
    for (auto& [id, message] : outgoing_) {
        if (message->peer != lost) continue;
        end_early(*message, gone.lost);
    }
    end_of_put(lost, gone.announcements.coming_id, gone.lost);
    for (std::optional<SlotPool>& pool : pools_)
        if (pool) pool->take_back(lost);
    start_all_outgoing();
    for (auto& [key, message] : incoming_) {
        if (key.first != lost) continue;
        message->failure = gone.lost;
        message->arrived.close(gone.lost);
        if (!message->finished.done()) message->finished.complete(gone.lost);
    }
}

// What a message that failed before its receive was posted holds of its sender's: slots, a part of
// its budget, and an answer that it may wait for.
void Core::give_back(Incoming& message) {
    const int from = message.peer;
    if (!peer(from).lost.ok()) return;
    message.discard_chunks = true;
    while (!message.arrived.empty())
        on_chunk(from, message.arrived.pop());
    if (!message.rendezvous || wire::is_eager(message.rts.offer))
        consumed_eager(from, message.envelope.bytes);
    if (message.synchronous_id == 0) return;
    Status told =
        tell_failure(*this, from, message.synchronous_id, message.failure, wire::For::sender);
    if (!told.ok()) log::error("the sender of a synchronous message was not told: {}", told.text());
}

}  // namespace gantry::p2p

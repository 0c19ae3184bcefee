// SPDX-License-Identifier: BSD-3-Clause
//
// One turn of the engine: copies that have ended, then what transports deliver, then who waited. What
// moves bytes takes its turns in transfer::Context; here is what messages add between these.
#include "p2p/messages.hpp"

#include <utility>

namespace gantry::p2p {

int Messages::progress() {
    int events = 0;
    if (device.pending()) {
        events += context.look_at_copies(awaited_ != nullptr ? &awaited_->done : nullptr);
        // The program goes on, if it waited for just that: its next call may be what the peer waits
        // for.
        if (awaited_ != nullptr && awaited_->done) {
            awaited_ = nullptr;
            if (!fin_queues_.empty()) send_fins();
            return events;
        }
    }
    context.tell_peers();
    if (!context.arbiter.claims_later().empty()) claim_what_is_due();
    events += context.deliver();
    if (!context.flags.awaited.empty()) events += take_raised_flags();
    // Each message for a device needs a receive that is posted: behind the last of these no more
    // come, until the program is told of an end.
    if (std::exchange(open_batch_, false))
        device.flush_batch(matcher.waiting_on_devices() > 0 ? device::BatchHint::expected
                                                            : device::BatchHint::none);
    events += context.resume();
    if (!fin_queues_.empty()) send_fins();
    return events;
}

void Messages::claim_what_is_due() {
    while (const auto due = context.arbiter.claims_later().next(executor.now())) {
        Incoming* message = incoming.find(due->from, due->id);
        const transfer::Endpoint& sender = endpoint(due->from);
        if (message == nullptr || !sender.lost.ok()) continue;
        if (!transfer::GpuArbiter::claim(sender, due->id, transfer::Claimant::receiver)) continue;
        wire::Chunk claimed{};
        claimed.pool = wire::kClaimed;
        message->arrived.push(claimed);
    }
}

bool Messages::pending() const {
    return !idle() || matcher.waiting() > 0 || context.busy();
}

bool Messages::idle() const {
    return outgoing.empty() && context.idle();
}

}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
//
// One turn of the engine: copies that have ended, then what transports deliver, then who waited.
#include "p2p/messages.hpp"

#include <utility>

namespace gantry::p2p {
namespace {

// Looks at the only network before anything else is asked again: each is a system call over TCP,
// and what lies between two of them is added to the latency of what arrives.
constexpr int kMoreLooks = 3;
// Reading the clock costs as much as a look at a ring, and exported memory is looked at rarely.
constexpr unsigned kTurnsBetweenClocks = 8;

}  // namespace

bool Messages::awaited_ended() {
    if (awaited_ == nullptr || !awaited_->done) return false;
    awaited_ = nullptr;
    return true;
}

// Who waited for a copy goes on before the next copy and the network are asked about: it may have
// something to send.
int Messages::look_at_copies() {
    context.arbiter.before_look();
    int events = 0, ended = 0;
    for (int look = 0; ended == 0 && look < looks_at_copies_ && device.pending(); ++look)
        ended = device.progress();
    do {
        events += ended;
        if (executor.has_ready()) events += executor.run_ready();
        if (awaited_ != nullptr && awaited_->done) return events;
        ended = ended > 0 && device.pending() ? device.progress() : 0;
    } while (ended > 0);
    return events;
}

int Messages::progress() {
    int events = 0;
    if (device.pending()) {
        events += look_at_copies();
        // The program goes on, if it waited for just that: its next call may be what the peer waits
        // for.
        if (awaited_ended()) {
            if (!fin_queues_.empty()) send_fins();
            return events;
        }
    }
    if (!context.exports.empty() && ++turns_ % kTurnsBetweenClocks == 0)
        context.tell_of_freed_memory(wire::kForget);
    if (context.anchors.has_work()) context.keep_anchors(wire::kAnchor);
    if (!context.arbiter.claims_later().empty()) claim_what_is_due();
    for (transport::Transport* transport : context.transports)
        events += transport->progress();
    if (!context.flags.awaited.empty()) events += take_raised_flags();
    if (!context.board.idle()) events += context.board.progress();
    // Each message for a device needs a receive that is posted: behind the last of these no more
    // come, until the program is told of an end.
    if (std::exchange(open_batch_, false))
        device.flush_batch(matcher.waiting_on_devices() > 0 ? device::BatchHint::expected
                                                            : device::BatchHint::none);
    // Behind the transports: what came from a peer may go to a copy engine meanwhile.
    events += context.host_copies.progress();
    if (executor.has_ready()) events += executor.run_ready();
    if (!fin_queues_.empty()) send_fins();
    return events;
}

int Messages::look_again() {
    int events = 0;
    if (only_network_ == nullptr || device.pending()) return 0;
    for (int look = 0; events == 0 && look < kMoreLooks; ++look)
        events = only_network_->progress();
    if (executor.has_ready()) events += executor.run_ready();
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
    if (!idle() || matcher.waiting() > 0) return true;
    for (const transport::Transport* transport : context.transports)
        if (transport->busy()) return true;
    return false;
}

bool Messages::idle() const {
    return context.operations.running() == 0 && !executor.has_ready() && !device.pending() &&
           outgoing.empty() && context.flags.awaited.empty() && context.board.idle();
}

}  // namespace gantry::p2p

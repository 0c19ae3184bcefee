// SPDX-License-Identifier: BSD-3-Clause
//
// RTS of device memory within a node, where most of an RTS is what names the memory. Programs repeat
// themselves, so each RTS says no more than what differs from the template of the conversation, which is
// the last RTS that said more:
//
//   Rts               anything about it is new                                          four cache lines
//   RtsOtherBuffer    another allocation, of the same size and not named in full        one
//   RtsFromTemplate   nothing but what is each message's own                            one
#include "p2p/messages.hpp"

#include "p2p/protocols/flagged_message.hpp"
#include "p2p/protocols/ipc_get.hpp"

#include <utility>

namespace gantry::p2p {
namespace {

bool can_be_repeated(const wire::Rts& rts) {
    return rts.handle.kind != device::IpcKind::none || rts.flag_number != 0;
}

}  // namespace

Status Messages::send_rts(int to, const wire::Rts& rts) {
    if (!can_be_repeated(rts) || !context.tuning.mechanisms.rts_templates)
        return send_envelope(to, wire::kRts, rts);
    Conversation& conversation = with(to);
    wire::Rts rest = rts;
    rest.set_own({});
    wire::Rts& last = conversation.rts_sent;
    if (rest == last) return send_envelope(to, wire::kRtsFromTemplate, rts.own());
    const std::uint64_t allocation = std::exchange(rest.handle.buffer_id, last.handle.buffer_id);
    const bool other_buffer = rest == last;
    Status sent = other_buffer ? send_envelope(to, wire::kRtsOtherBuffer,
                                               wire::RtsOtherBuffer{rts.own(), allocation})
                               : send_envelope(to, wire::kRts, rts);
    if (!sent.ok()) return sent;
    if (!other_buffer) last = rest;
    last.handle.buffer_id = allocation;
    ++conversation.rts_version;
    return sent;
}

void Messages::on_rts(int from, const wire::Rts& rts) {
    if (can_be_repeated(rts)) with(from).rts_received = rts;
    take_rts(from, rts, rts.own());
}

void Messages::on_rts_other_buffer(int from, const wire::RtsOtherBuffer& rts) {
    wire::Rts& received = with(from).rts_received;
    received.handle.buffer_id = rts.buffer_id;
    take_rts(from, received, rts.again);
}

// `whole` says what `own` does not.
void Messages::take_rts(int from, const wire::Rts& whole, const wire::RtsFromTemplate& own) {
    with(from).sequence.rts_taken(own.send_id);
    Request* receive = arrive(from, own.envelope);
    std::optional<Verdict> verdict;
    if (receive == nullptr || !deliver_at_once(from, whole, own, *receive, false, verdict)) {
        auto message = std::make_unique<Incoming>(executor);
        message->rts = whole;
        message->rts.set_own(own);
        if (own.slot_flag.number != 0) message->failure = await_flags(*this, from, message->rts);
        message->envelope = own.envelope;
        message->peer = from;
        message->rendezvous = true;
        message->verdict = std::move(verdict);
        if (receive != nullptr) {
            deliver(std::move(message), *receive);
        } else {
            incoming.add_unexpected(*message);  // chunks may come before a receive is posted
            keep(std::move(message));
        }
    }
    take_followers(from, own.send_id);
}

bool Messages::deliver_at_once(int from, const wire::Rts& whole, const wire::RtsFromTemplate& own,
                               Request& receive, bool late, std::optional<Verdict>& verdict) {
    const Bytes bytes = own.envelope.bytes;
    const bool by_flags = own.slot_flag.number != 0;
    if (!receive.location.on_device() || !receive.buffer.contiguous() ||
        receive.buffer.bytes() < bytes || bytes == 0 || !context.tuning.mechanisms.one_copy ||
        (!by_flags && !wire::expects_get(whole.offer)))
        return false;
    const Asked asked{endpoint(from), whole, own, receive, bytes};
    const plan::SelectionCache::Hint hint = hint_of_verdict(context, asked);
    const plan::Selection* selection = known_verdict(context, asked, hint);
    if (selection == nullptr) {
        verdict.emplace();
        gather(context, asked, *verdict);
        selection = &decide(context, asked, *verdict);
        const bool at_once = by_flags ? needs_no_answer(*this, asked, *selection)
                                      : is_get_of_mapped_memory(*this, asked, *selection);
        if (!at_once) return false;
        if (may_be_hinted(context, *verdict)) context.selections.note(hint, *selection);
    }
    // Others may come in the same turn, whose end is near.
    const auto batch = late ? device::BatchHint::unknown : device::BatchHint::expected;
    const bool taken = by_flags ? receive_by_flags(*this, asked, *selection, receive, late)
                                : get_at_once(*this, asked, *selection, receive, batch);
    if (!taken) return false;
    if (!by_flags) open_batch_ = true;
    explain.record(*selection, from, true);
    return true;
}

}  // namespace gantry::p2p

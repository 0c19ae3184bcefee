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

#include <cstring>
#include <utility>

namespace gantry::p2p {
namespace {

bool can_be_repeated(const wire::Rts& rts) {
    return rts.handle.kind != 0 || rts.flag_number != 0;
}

bool same(const wire::Rts& one, const wire::Rts& other) {
    return std::memcmp(&one, &other, sizeof one) == 0;
}

// What the verdict on such a message follows from, beside what changes the epoch of the peer: of a get the
// two buffers; of a message by flags, whose buffers may be new each time, how they could be mapped.
plan::SelectionCache::Hint hint_of_verdict(const transfer::Context& context, const Asked& asked) {
    constexpr std::uint64_t kGet = 2, kByFlags = 3;
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;
    const device::Location& sink = asked.receive.location;
    std::uint64_t gpu = 0;
    std::memcpy(&gpu, asked.whole.handle.gpu, sizeof gpu);
    plan::SelectionCache::Hint hint{asked.from.hint_word(), gpu, asked.own.envelope.bytes, 0};
    if (asked.own.slot_flag.number == 0) {
        hint.allocation ^= asked.whole.handle.buffer_id * kSpread + sink.buffer_id;
        hint.ends = kGet;
        return hint;
    }
    hint.ends = kByFlags | static_cast<std::uint64_t>(asked.whole.handle.kind) << 8 |
                static_cast<std::uint64_t>(sink.ipc) << 16 |
                static_cast<std::uint64_t>(static_cast<std::uint16_t>(sink.gpu)) << 24 |
                static_cast<std::uint64_t>(asked.whole.busy) << 40 |
                static_cast<std::uint64_t>(context.device.pending()) << 41 |
                static_cast<std::uint64_t>(asked.own.slot_flag.cuts_through) << 42 |
                static_cast<std::uint64_t>(asked.whole.offer.chunk / transfer::kDeviceSlotUnit)
                    << 43;
    return hint;
}

// A time-sliced GPU and a BAR mapping keep accounts of each message.
bool may_be_hinted(const transfer::Context& context, const Verdict& verdict) {
    return !verdict.facts.same_gpu && !context.device.has_windows();
}

}  // namespace

Status Messages::send_rts(int to, const wire::Rts& rts) {
    if (!can_be_repeated(rts) || !context.tuning.mechanisms.rts_templates)
        return send(to, wire::kRts, rts);
    Conversation& conversation = with(to);
    wire::Rts rest = rts;
    rest.set_own({});
    wire::Rts& last = conversation.rts_sent;
    if (same(rest, last)) return send(to, wire::kRtsFromTemplate, rts.own());
    const std::uint64_t allocation = std::exchange(rest.handle.buffer_id, last.handle.buffer_id);
    const bool other_buffer = same(rest, last);
    Status sent = other_buffer
                      ? send(to, wire::kRtsOtherBuffer, wire::RtsOtherBuffer{rts.own(), allocation})
                      : send(to, wire::kRts, rts);
    if (!sent.ok()) return sent;
    if (!other_buffer) std::memcpy(&last, &rest, sizeof last);
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
    Request* receive = matcher.arrive(own.envelope);
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
            matcher.keep(std::move(message));
        }
    }
    take_followers(from, own.send_id);
}

// What is known of a message from the last one between those two buffers, or (by flags) of that size.
plan::Selection* Messages::known_verdict(const Asked& asked,
                                         const plan::SelectionCache::Hint& hint) {
    plan::Selection* const known = context.selections.known(hint);
    if (known == nullptr || asked.own.slot_flag.number == 0) return known;
    // It is staged as long as opening a mapping does not pay.
    transfer::RemoteMemory& memory = asked.from.memory;
    const device::Location& sink = asked.receive.location;
    const wire::Handle& source = asked.whole.handle;
    const bool source_closed =
        source.kind == 0 ||
        (memory.gets_staged(source.buffer_id) < known->advice().source_pays_at &&
         device.access(wire::decode(source), sink.gpu) ==
             (known->facts.descriptor ? device::Access::closed : device::Access::no_descriptor));
    const bool sink_closed =
        sink.ipc == device::IpcKind::none ||
        (!memory.is_put_open(sink.buffer_id) && !memory.is_put_refused(sink.buffer_id) &&
         memory.puts_staged(sink.buffer_id) < known->advice().sink_pays_at);
    if (!source_closed || !sink_closed) return nullptr;
    memory.staged(source, sink, {});
    return known;
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
    const plan::Selection* selection = known_verdict(asked, hint);
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

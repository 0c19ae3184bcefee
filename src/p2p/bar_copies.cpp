// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/bar_copies.hpp"

#include "p2p/messages.hpp"
#include "p2p/offer.hpp"
#include "plan/windows.hpp"

#include <array>

namespace gantry::p2p {
namespace {

// Sends in a row without a word from the peer: many small messages at once are better read by one
// kernel of the receiver's than one after the other by this processor.
constexpr unsigned kSingleMessages = 4;

bool may_have(transfer::Context& context, const device::Location& location) {
    return location.on_device() && context.device.has_windows();
}

}  // namespace

Result<bool> send_by_window(Messages& messages, const Group& group, const Buffer& buffer,
                            const device::Location& location, int to, int tag) {
    transfer::Context& context = messages.context;
    if (!may_have(context, location)) return false;
    Conversation& peer = messages.with(to);
    const Bytes bytes = buffer.bytes();
    // The planner is asked last: a buffer that was refused a window costs its messages little.
    if (peer.endpoint.facts.self || bytes > peer.eager_limit || !buffer.contiguous() ||
        peer.read_by_bar >= kSingleMessages ||
        !plan::window_reads_win(context.device.gpu_facts(location.gpu), bytes) ||
        !context.device.window(location, buffer.data(), bytes))
        return false;
    plan::Question question;
    question.bytes = bytes;
    question.source = transfer::end_of(location, buffer);
    plan::Facts facts = facts_for_offer(context, peer.endpoint, location);
    facts.source_window = true;
    const plan::Selection& selection = context.selections.select(question, facts);
    if (selection.plan().source_engine != plan::CopyEngine::window) return false;
    std::array<std::byte, plan::kLargestWindowRead> image;
    if (!context.device.read_window(location, buffer.data(), image.data(), bytes).ok())
        return false;
    context.explain.record(selection, to, false);
    Status sent = messages.send(to, wire::kEager, messages.next_envelope(group, to, tag, bytes),
                                transport::ConstSpan(image.data(), bytes));
    if (!sent.ok()) {
        peer.sequence.roll_back();
        return sent;
    }
    peer.eager_outstanding += bytes;
    ++peer.read_by_bar;
    return true;
}

bool write_by_window(transfer::Context& context, const device::Location& location, void* to,
                     transport::ConstSpan from) {
    return may_have(context, location) &&
           plan::window_writes_win(context.device.gpu_facts(location.gpu), from.size()) &&
           context.device.window(location, to, from.size()) &&
           context.device.write_window(location, to, from.data(), from.size()).ok();
}

bool wants_sink_window(transfer::Context& context, const plan::Question& question,
                       plan::Facts facts, const device::Location& sink, const void* address) {
    if (!may_have(context, sink) || question.bytes > plan::kLargestWindowWrite) return false;
    facts.sink_window = true;
    return context.selections.select(question, facts).plan().sink_engine ==
               plan::CopyEngine::window &&
           context.device.window(sink, address, question.bytes);
}

}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/bar_copies.hpp"

#include "p2p/messages.hpp"
#include "p2p/offer.hpp"
#include "plan/bar.hpp"

#include <array>

namespace gantry::p2p {
namespace {

// Sends in a row without a word from the peer: many small messages at once are better read by one
// kernel of the receiver's than one after the other by this processor.
constexpr unsigned kSingleMessages = 4;

bool may_have(transfer::Context& context, const device::Location& location) {
    return location.on_device() && context.device.has_bar_mapping(location, nullptr, 0);
}

// False: there is no mapping any more, and nothing has happened.
bool copy_by_bar(transfer::Context& context, const device::Location& location, void* to,
                 const void* from, Bytes bytes) {
    Completion done(context.executor);
    context.device.copy({.destination = to,
                         .source = from,
                         .bytes = bytes,
                         .gpu = location.gpu,
                         .engine = device::Engine::bar,
                         .allocation = location.buffer_id},
                        done);
    return done.status().ok();
}

}  // namespace

Result<bool> send_by_bar(Messages& messages, const Group& group, const Buffer& buffer,
                         const device::Location& location, int to, int tag) {
    transfer::Context& context = messages.context;
    if (!may_have(context, location)) return false;
    Conversation& peer = messages.with(to);
    const Bytes bytes = buffer.bytes();
    // The planner is asked last: a buffer that was refused a mapping costs its messages little.
    if (peer.endpoint.facts.self || bytes > peer.eager_limit || !buffer.contiguous() ||
        peer.read_by_bar >= kSingleMessages ||
        !plan::bar_reads_win(context.device.gpu_facts(location.gpu), bytes) ||
        !context.device.has_bar_mapping(location, buffer.data(), bytes))
        return false;
    plan::Question question;
    question.bytes = bytes;
    question.source = transfer::end_of(location, buffer);
    plan::Facts facts = facts_for_offer(context, peer.endpoint, location);
    facts.source_bar = true;
    const plan::Selection& selection = context.selections.select(question, facts);
    if (selection.plan().source_engine != plan::CopyEngine::bar) return false;
    std::array<std::byte, plan::kLargestBarRead> image;
    if (!copy_by_bar(context, location, image.data(), buffer.data(), bytes)) return false;
    context.explain.record(selection, to, false);
    Status sent = messages.send_envelope(to, wire::kEager,
                                         messages.next_envelope(group, to, tag, bytes, nullptr),
                                         transport::ConstSpan(image.data(), bytes));
    if (!sent.ok()) {
        peer.sequence.roll_back();
        return sent;
    }
    peer.eager_outstanding += bytes;
    ++peer.read_by_bar;
    return true;
}

bool write_by_bar(transfer::Context& context, const device::Location& location, void* to,
                  transport::ConstSpan from) {
    return may_have(context, location) &&
           plan::bar_writes_win(context.device.gpu_facts(location.gpu), from.size()) &&
           context.device.has_bar_mapping(location, to, from.size()) &&
           copy_by_bar(context, location, to, from.data(), from.size());
}

bool wants_sink_bar(transfer::Context& context, const plan::Question& question, plan::Facts facts,
                    const device::Location& sink, const void* address) {
    if (!may_have(context, sink) || question.bytes > plan::kLargestBarWrite) return false;
    facts.sink_bar = true;
    return context.selections.select(question, facts).plan().sink_engine == plan::CopyEngine::bar &&
           context.device.has_bar_mapping(sink, address, question.bytes);
}

}  // namespace gantry::p2p

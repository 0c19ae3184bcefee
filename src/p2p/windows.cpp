// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/windows.hpp"

#include "plan/windows.hpp"

#include <array>

namespace gantry::p2p {
namespace {

// Sends in a row without a word from the peer: many small messages at once are better read by one
// kernel of the receiver's than one after the other by this processor.
constexpr unsigned kSingleMessages = 4;

bool may_have(Core& core, const device::Location& location) {
    return location.on_device() && core.device.has_windows();
}

}  // namespace

Result<bool> send_by_window(Core& core, const Group& group, const Buffer& buffer,
                            const device::Location& location, int to, int tag) {
    if (!may_have(core, location)) return false;
    Peer& peer = core.peer(to);
    const Bytes bytes = buffer.bytes();
    // The planner is asked last: a buffer that was refused a window costs its messages little.
    if (peer.facts.self || bytes > peer.eager_limit || !buffer.contiguous() ||
        peer.read_by_window >= kSingleMessages ||
        !plan::window_reads_win(core.device.gpu_facts(location.gpu), bytes) ||
        !core.device.window(location, buffer.data(), bytes))
        return false;
    plan::Question question;
    question.bytes = bytes;
    question.source = core.end_of(location, buffer);
    plan::Facts facts = core.facts_for_offer(to, location);
    facts.source_window = true;
    const plan::Choice& choice = core.choose(question, facts);
    if (choice.plan.source_engine != plan::CopyEngine::window) return false;
    std::array<std::byte, plan::kLargestWindowRead> image;
    if (!core.device.read_window(location, buffer.data(), image.data(), bytes).ok()) return false;
    core.explain.record(question, facts, choice, to, false);
    Status sent = core.send(to, wire::kEager, core.next_envelope(group, to, tag, bytes),
                            transport::ConstSpan(image.data(), bytes));
    if (!sent.ok()) {
        core.take_back_envelope(to);
        return sent;
    }
    peer.eager_outstanding += bytes;
    ++peer.read_by_window;
    return true;
}

bool write_by_window(Core& core, const device::Location& location, void* to,
                     transport::ConstSpan from) {
    return may_have(core, location) &&
           plan::window_writes_win(core.device.gpu_facts(location.gpu), from.size()) &&
           core.device.window(location, to, from.size()) &&
           core.device.write_window(location, to, from.data(), from.size()).ok();
}

bool wants_sink_window(Core& core, const plan::Question& question, plan::Facts facts,
                       const device::Location& sink, const void* address) {
    if (!may_have(core, sink) || question.bytes > plan::kLargestWindowWrite) return false;
    facts.sink_window = true;
    return core.choose(question, facts).plan.sink_engine == plan::CopyEngine::window &&
           core.device.window(sink, address, question.bytes);
}

}  // namespace gantry::p2p

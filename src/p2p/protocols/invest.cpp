// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/protocols/invest.hpp"

namespace gantry::p2p {

using device::IpcKind;

void look_at_mappings(Core& core, const Incoming& message, const device::Location& sink, int gpu,
                      plan::Question& question, plan::Facts& facts) {
    const Mappings& mappings = core.peer(message.peer).mappings;
    const device::IpcHandle source = wire::decode(message.rts.handle);
    if (source.kind != IpcKind::none && facts.receiver_opens) {
        const device::Access access = core.device.access(source, gpu);
        facts.ipc_open = access == device::Access::open;
        facts.descriptor = access != device::Access::no_descriptor;
        if (!facts.ipc_open) facts.uses = mappings.gets_staged(source.buffer_id);
        if (access == device::Access::never) question.source.ipc = IpcKind::none;
    }
    facts.receiver_busy = !facts.ipc_open && core.device.pending();
    facts.put_open = mappings.is_put_open(sink.buffer_id);
    if (facts.put_open || sink.ipc == IpcKind::none) return;
    facts.put_uses = mappings.puts_staged(sink.buffer_id);
    facts.sender_busy = message.rts.busy != 0;
    const bool needs_descriptor = sink.ipc == IpcKind::vmm || sink.ipc == IpcKind::pool;
    if (mappings.is_put_refused(sink.buffer_id) || (needs_descriptor && message.rts.inbox == 0))
        question.sink.ipc = IpcKind::none;
}

bool would_get(Core& core, const plan::Question& question, plan::Facts facts) {
    facts.descriptor = true;
    const plan::Plan& plan = core.choose(question, facts).plan;
    return plan.protocol == plan::Protocol::ipc && plan.executor == plan::Executor::receiver;
}

}  // namespace gantry::p2p

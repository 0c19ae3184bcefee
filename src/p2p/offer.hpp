// SPDX-License-Identifier: BSD-3-Clause
//
// The offer of a message that its sender does not just send: what the planner makes of what the
// sender knows, and the request to send that tells the receiver of it.
#pragma once

#include "p2p/outgoing.hpp"
#include "plan/question.hpp"

namespace gantry::p2p {

class Core;

inline bool host_memory_of(const device::Location& location) {
    return location.kind == device::MemoryKind::host || location.kind == device::MemoryKind::pinned;
}

void make_offer(Core& core, Outgoing& message, const plan::Question& question);
// All but the flags that it may be told by.
wire::RequestToSend request_to_send(Core& core, Outgoing& message, const wire::Envelope& envelope);
// Nothing is copied ahead of the verdict.
bool waits_for_an_answer(const Outgoing& message);
// A request to send costs a network microseconds of the processor, and a copy engine none: the copy
// comes first.
bool copies_before_it_tells(Core& core, const Outgoing& message);

}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
//
// What a receiver tells the planner about the mappings at both ends of a message.
#pragma once

#include "p2p/core.hpp"

namespace gantry::p2p {

// Fills in the facts of a message from what is mapped, could be, and was counted
// (p2p/mappings.hpp); an end that cannot be mapped is one without IPC. `gpu` is the one that would
// copy here.
void look_at_mappings(Core& core, const Incoming& message, const device::Location& sink, int gpu,
                      plan::Question& question, plan::Facts& facts);

// Whether the receiver would copy if it had the source's file descriptor.
bool would_get(Core& core, const plan::Question& question, plan::Facts facts);

}  // namespace gantry::p2p

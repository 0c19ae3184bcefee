// SPDX-License-Identifier: BSD-3-Clause
//
// Small messages of device memory that the processor copies itself, through a BAR mapping (GDRCopy).
// The planner says whether that wins; here is who asks the planner, so that the protocols need only ask
// who copies:
//
//   sender     out of device memory: read in the sending call and sent like a host message
//   receiver   into device memory: written out of the transport's ring, a slot or held memory
//
// Where there is no GDRCopy each is one question to the device, and everything is as without.
#pragma once

#include "p2p/group.hpp"
#include "p2p/request.hpp"
#include "transfer/context.hpp"

namespace gantry::p2p {

class Messages;

// Sends the message so if that is best; false: it goes another way, and nothing has happened.
Result<bool> send_by_bar(Messages& messages, const Group& group, const Buffer& buffer,
                         const device::Location& location, int to, int tag);
// Writes the bytes so if that is best; false: nothing has happened.
bool write_by_bar(transfer::Context& context, const device::Location& location, void* to,
                  transport::ConstSpan from);
// Of a rendezvous message: whether its sink is to be written so.
bool wants_sink_bar(transfer::Context& context, const plan::Question& question, plan::Facts facts,
                    const device::Location& sink, const void* address);

}  // namespace gantry::p2p

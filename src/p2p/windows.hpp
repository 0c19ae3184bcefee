// SPDX-License-Identifier: BSD-3-Clause
//
// Small messages of device memory that the processor copies itself, where there is GDRCopy
// (device::Device, windows). The planner says whether that wins; here is who asks it, so that the
// protocols need only ask who copies:
//
//   sender     out of device memory: read in the sending call and sent like a host message
//   receiver   into device memory: written out of the transport's ring, a slot or kept memory
//
// Where there is no GDRCopy each is one question to the device, and everything is as without.
#pragma once

#include "p2p/core.hpp"

namespace gantry::p2p {

// Sends it so if that is best; false: it goes another way, and nothing has happened.
Result<bool> send_by_window(Core& core, const Group& group, const Buffer& buffer,
                            const device::Location& location, int to, int tag);
// Writes it so if that is best; false likewise.
bool write_by_window(Core& core, const device::Location& location, void* to,
                     transport::ConstSpan from);
// Of a message that was announced: whether its sink is to be written so.
bool wants_sink_window(Core& core, const plan::Question& question, plan::Facts facts,
                       const device::Location& sink, const void* address);

}  // namespace gantry::p2p

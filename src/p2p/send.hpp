// SPDX-License-Identifier: BSD-3-Clause
//
// The start of every send, up to its envelope (send.cpp).
#pragma once

#include "p2p/messages.hpp"

namespace gantry::p2p {

// Whether the message has left already. `request` is made if it is null and one is needed; when
// nothing was started, it is still the caller's. `waits`: the caller does nothing else meanwhile.
Result<bool> start_send(Messages& messages, const Group& group, const Buffer& buffer,
                        const device::Location& location, int destination, int tag, SendMode mode,
                        Request*& request, bool waits);

}  // namespace gantry::p2p

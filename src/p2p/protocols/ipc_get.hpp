// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "p2p/messages.hpp"

namespace gantry::p2p {

// A device message that is read straight out of memory that is mapped already, and whose sender expects
// just that: no coroutine, no record of the message. False: the verdict is another, and nothing has
// happened.
bool get_at_once(Messages& messages, const Asked& asked, const Verdict& verdict, Request& receive,
                 device::BatchHint batch);

}  // namespace gantry::p2p

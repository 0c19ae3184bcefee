// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "p2p/messages.hpp"

namespace gantry::p2p {

// Whether that answer is to read memory that is mapped already, and its sender expects just that.
bool is_get_of_mapped_memory(const Messages& messages, const Asked& asked,
                             const plan::Selection& selection);
// Such a message: no coroutine, no record of it. False: the memory is not mapped any more, and nothing has
// happened.
bool get_at_once(Messages& messages, const Asked& asked, const plan::Selection& selection,
                 Request& receive, device::BatchHint batch);

}  // namespace gantry::p2p

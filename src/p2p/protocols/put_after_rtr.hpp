// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "p2p/messages.hpp"

namespace gantry::p2p {

// A blocking receive that is about to be posted tells its sender where its bytes go (RTR); a sender that
// knows puts them there at once.
void send_rtr(Messages& messages, Request& receive);
// The same of a receive whose message of that number lay there already: its sender, who got no RTR in
// time, learns that a mapping of the buffer would be of use. Else a rank whose message always comes
// first never puts.
void send_late_rtr(Messages& messages, const Request& receive, int from, std::uint32_t sequence);
// The sender's side, of a message that is about to be numbered and that the program waits for.
// False: it goes the usual way, unless the receiver was lost meanwhile. `request` is made if it is
// null.
bool put_after_rtr(Messages& messages, const Group& group, const Buffer& buffer,
                   const device::Location& location, int to, int tag, Request*& request);

}  // namespace gantry::p2p

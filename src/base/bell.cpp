// SPDX-License-Identifier: BSD-3-Clause
#include "base/bell.hpp"

#include "base/futex.hpp"

namespace gantry {

bool Bell::sleep(Ticket ticket, Nanoseconds at_most) {
    // Ends at once when rings_ is not the ticket any more; a signal or a stray wake is a short nap.
    if (rings_.load() == ticket) futex::sleep_while(rings_, ticket, at_most);
    asleep_.store(0);
    return rings_.load() != ticket;
}

void Bell::wake() {
    rings_.fetch_add(1);
    futex::wake_one(rings_);
}

}  // namespace gantry

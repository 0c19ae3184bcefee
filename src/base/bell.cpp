// SPDX-License-Identifier: BSD-3-Clause
#include "base/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace gantry {

bool Bell::sleep(Ticket ticket, Nanoseconds at_most) {
    const timespec relative{at_most / kSecond, at_most % kSecond};
    // Ends at once when rings_ is not the ticket any more; a signal or a stray wake is a short nap.
    if (rings_.load() == ticket)
        syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, ticket, &relative, nullptr, 0);
    asleep_.store(0);
    return rings_.load() != ticket;
}

void Bell::wake() {
    rings_.fetch_add(1);
    syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace gantry

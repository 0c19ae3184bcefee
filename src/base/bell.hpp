// SPDX-License-Identifier: BSD-3-Clause
//
// Bell: one thread sleeps, for a bounded time, until another rings. Ringing is a load when nobody
// sleeps, one system call (futex) otherwise. The sleeper looks once more between `listen` and
// `sleep`, so a ring between the two is not lost:
//
//     const Bell::Ticket ticket = bell.listen();
//     if (there is something to do) bell.stay_awake(); else bell.sleep(ticket, nap);
#pragma once

#include "base/units.hpp"

#include <atomic>
#include <cstdint>

namespace gantry {

class Bell {
  public:
    using Ticket = std::uint32_t;

    Ticket listen() {
        asleep_.store(1);
        return rings_.load();
    }
    void stay_awake() { asleep_.store(0); }
    // Until the bell rings, or the time is over; true when it rang.
    bool sleep(Ticket ticket, Nanoseconds at_most);

    void ring() {
        if (asleep_.load() != 0) wake();
    }
    bool nobody_sleeps() const { return asleep_.load(std::memory_order_relaxed) == 0; }
    // How often a ring has found somebody asleep.
    std::uint32_t rings() const { return rings_.load(); }

  private:
    void wake();
    std::atomic<std::uint32_t> asleep_{0};
    std::atomic<std::uint32_t> rings_{0};  // what the sleeper's futex waits on
};

}  // namespace gantry

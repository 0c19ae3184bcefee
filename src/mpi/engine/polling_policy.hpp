// SPDX-License-Identifier: BSD-3-Clause
//
// PollingPolicy: what the progress thread does between two looks at the engine (mpi/engine/progress_thread.hpp).
// Waking a sleeper costs the caller 2 to 5 us and the message 30 to 60 us on a virtual machine
// whose processors halt (two H200s, docs/design/progress-thread.md), so a thread that has a
// processor to itself sleeps late and looks for work meanwhile.
//
//     polling_policy.looked({events, inside, pending}, now);
//     switch (polling_policy.next()) ...
#pragma once

#include "base/units.hpp"

#include <algorithm>
#include <cstdint>

namespace gantry::mpi {

// What a look at the engine found.
struct Look {
    bool inside = false;  // false: the program is, and drives it
    int events = 0;
    bool pending = false;
};

class PollingPolicy {
  public:
    static constexpr Nanoseconds kAwake = 50 * kMicrosecond;
    static constexpr Nanoseconds kWatch = 20 * kMicrosecond;
    static constexpr Nanoseconds kFirstNap = 5 * kMicrosecond;
    static constexpr Nanoseconds kLongestNap = 100 * kMicrosecond;
    static constexpr Nanoseconds kIdleNap = 10 * kMillisecond;

    enum class Next : std::uint8_t {
        look,   // at once
        watch,  // not the engine, but whether the program leaves work behind; kWatch at most
        rest,   // kFirstNap, deaf to the bell: others want this processor
        sleep,  // until the bell rings, nap() at most
    };

    // `own_processor`: spinning takes nothing from the program, and goes on for `awake` after the
    // last event.
    PollingPolicy(bool own_processor, Nanoseconds awake, Nanoseconds now)
        : alone_(own_processor), awake_(awake), last_event_(now) {}

    void happened(Nanoseconds now) {
        last_event_ = now;
        nap_ = kFirstNap;
        next_ = Next::look;
    }
    void looked(const Look& look, Nanoseconds now) {
        if (look.events > 0) return happened(now);
        const Nanoseconds quiet = now - last_event_;
        if (alone_ && quiet < awake_)
            next_ = look.inside && look.pending ? Next::look : Next::watch;
        else if (!alone_ && quiet < kAwake && (look.pending || !look.inside))
            // Not listening: a program that calls MPI again and again does not ring each time.
            next_ = Next::rest;
        else
            next_ = Next::sleep;
    }
    Next next() const { return next_; }

    // How long the sleep lasts that follows; each is longer than the one before.
    Nanoseconds nap(bool pending) {
        const Nanoseconds now = pending ? nap_ : kIdleNap;
        nap_ = std::min(2 * nap_, kLongestNap);
        return now;
    }

  private:
    bool alone_;
    Nanoseconds awake_;
    Next next_ = Next::look;
    Nanoseconds last_event_;
    Nanoseconds nap_ = kFirstNap;
};

}  // namespace gantry::mpi

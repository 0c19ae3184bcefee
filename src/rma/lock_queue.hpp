// SPDX-License-Identifier: BSD-3-Clause
//
// LockQueue: who waits for the lock of one rank's part of a window (control.hpp), in the order in which
// they came. Who waits takes a number and shows it at its place, in memory of the node:
//
//     [local rank 0][... 1] ... [the owner, for those of other nodes]     number of 30 bits | 1 | exclusive
//
// Who asks for the lock, too, lets those in front go first, unless both want it shared. So a lock that is
// taken again and again, by whomever, comes to everybody who waits. The queue is about fairness alone: who
// holds the lock is a matter of the lock word, and a number that is seen late costs its owner a turn.
//
// Two things are stronger than the order, because nobody may wait for ever on account of it:
//   asleep   who is in front does not take a lock that is free (its process computes, or the owner does,
//            which takes the lock for those of other nodes)
//   patience the lock is held shared for long, and a rank that waits for it exclusively stands in front of
//            one that wants it shared. The holder may be waiting for that one.
#pragma once

#include "base/units.hpp"
#include "rma/control.hpp"

#include <atomic>
#include <cstddef>
#include <span>

namespace gantry::rma {

// One who waits.
struct LockWait {
    std::uint32_t number = 0;  // as it is shown; 0: none was taken yet
    bool exclusive = false;
    // Since when the lock has been free, or held so that this one could have it, too; 0: it is not.
    Nanoseconds free_since = 0, open_since = 0;
};

class LockQueue {
  public:
    static constexpr Nanoseconds kAsleep = 2'000'000;
    static constexpr Nanoseconds kPatience = 1'000'000'000;

    LockQueue(ControlBlock& control, std::span<std::uint32_t> places)
        : control_(control), places_(places) {}

    LockWait take_number(bool exclusive);
    // What others see at that place from now on; 0: nobody waits there.
    void show(std::size_t place, std::uint32_t number);
    bool is_empty() const { return control_.waiting.load(std::memory_order_relaxed) == 0; }

    // Whether somebody stands in front of `mine` (number 0: behind everybody) who must have the lock
    // first. `passes(place)`: nobody has to wait for what stands there.
    template <class Passes>
    bool somebody_in_front(const LockWait& mine, const Passes& passes) const {
        if (is_empty()) return false;
        for (std::size_t place = 0; place < places_.size(); ++place) {
            const std::uint32_t shown = at(place);
            if (shown != 0 && goes_first(shown, mine) && !passes(place)) return true;
        }
        return false;
    }
    static bool goes_first(std::uint32_t shown, const LockWait& mine) {
        if (!mine.exclusive && (shown & kExclusive) == 0) return false;
        return mine.number == 0 || is_before(shown, mine.number);
    }
    // What the owner shows for several: the oldest number, and whether any wants it exclusively.
    static std::uint32_t together(std::uint32_t one, std::uint32_t other);

    // The lock could be had if nobody stood in front: whether that has been so for too long.
    bool has_waited_enough(LockWait& mine, Nanoseconds now) const;

  private:
    static constexpr std::uint32_t kExclusive = 1, kWaits = 2, kStep = 4;
    static bool is_before(std::uint32_t one, std::uint32_t other) {
        return static_cast<std::int32_t>(one / kStep * kStep - other / kStep * kStep) < 0;
    }
    std::uint32_t at(std::size_t place) const {
        return std::atomic_ref(places_[place]).load(std::memory_order_relaxed);
    }

    ControlBlock& control_;
    std::span<std::uint32_t> places_;
};

}  // namespace gantry::rma

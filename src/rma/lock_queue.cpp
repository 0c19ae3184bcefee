// SPDX-License-Identifier: BSD-3-Clause
#include "rma/lock_queue.hpp"

namespace gantry::rma {

LockWait LockQueue::take_number(bool exclusive) {
    LockWait wait;
    wait.exclusive = exclusive;
    wait.number = control_.next_number.fetch_add(kStep, std::memory_order_relaxed) | kWaits |
                  (exclusive ? kExclusive : 0);
    return wait;
}

void LockQueue::show(std::size_t place, std::uint32_t number) {
    // Counted before it is shown: who dies between the two is counted for ever, which costs others a look.
    if (number != 0) control_.waiting.fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t before =
        std::atomic_ref(places_[place]).exchange(number, std::memory_order_relaxed);
    if (before != 0) control_.waiting.fetch_sub(1, std::memory_order_relaxed);
}

std::uint32_t LockQueue::together(std::uint32_t one, std::uint32_t other) {
    if (one == 0 || other == 0) return one | other;
    const std::uint32_t exclusive = (one | other) & kExclusive;
    return (is_before(one, other) ? one : other) | exclusive;
}

bool LockQueue::has_waited_enough(LockWait& mine, Nanoseconds now) const {
    const auto since = [now](Nanoseconds& begin, bool holds) {
        if (!holds) begin = 0;
        if (holds && begin == 0) begin = now;
        return holds ? now - begin : -1;
    };
    const std::uint64_t word = control_.access.load(std::memory_order_relaxed);
    const bool open = mine.exclusive ? word == 0 : word >> 32 == 0;
    const Nanoseconds free = since(mine.free_since, word == 0);
    const Nanoseconds could = since(mine.open_since, open);
    return free >= kAsleep || could >= kPatience;
}

}  // namespace gantry::rma

// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/slots.hpp"

namespace gantry::p2p {

SlotPool::SlotPool(Executor&, std::span<std::byte> memory, Bytes unit_bytes)
    : memory_(memory),
      unit_bytes_(unit_bytes),
      used_(memory.size() / unit_bytes, false),
      ahead_(used_.size(), false),
      free_units_(static_cast<std::uint32_t>(used_.size())) {}

Bytes SlotPool::largest(SlotUse use) const {
    const std::uint32_t quarter = total_units() / 4;
    std::uint32_t units = total_units() - quarter;
    if (use == SlotUse::ahead) units = quarter;
    if (use == SlotUse::sink) units = quarter > 0 ? quarter : total_units();
    return units * unit_bytes_;
}

Slot SlotPool::take(std::uint32_t units, SlotUse use) {
    const std::uint32_t quarter = total_units() / 4;
    if (units == 0 || units > free_units_) return {};
    if (use != SlotUse::sink && free_units_ - units < quarter) return {};
    if (use == SlotUse::ahead && ahead_units_ + units > quarter) return {};
    // First fit: the slots that were used last are still in the caches of both processes.
    std::uint32_t run = 0;
    for (std::uint32_t at = 0; at < total_units(); ++at) {
        run = used_[at] ? 0 : run + 1;
        if (run < units) continue;
        const std::uint32_t first = at + 1 - units;
        for (std::uint32_t unit = first; unit <= at; ++unit) {
            used_[unit] = true;
            ahead_[unit] = use == SlotUse::ahead;
        }
        free_units_ -= units;
        if (use == SlotUse::ahead) ahead_units_ += units;
        return Slot{memory_.data() + first * unit_bytes_, first, units, use};
    }
    return {};
}

Slot SlotPool::try_acquire(Bytes bytes, SlotUse use) {
    // Sinks do not queue behind sources: their reserve must stay reachable while sources wait.
    if (use != SlotUse::sink && !waiters_.empty()) return {};
    return take(static_cast<std::uint32_t>(divide_up(bytes, unit_bytes_)), use);
}

Task<Result<Slot>> SlotPool::acquire(Executor& executor, Bytes bytes, SlotUse use) {
    if (bytes > largest(use))
        co_return failure(MPI_ERR_INTERN,
                          "a staging slot of {} bytes was asked for, the largest is {}", bytes,
                          largest(use));
    Slot slot = try_acquire(bytes, use);
    if (slot.units != 0) co_return slot;
    Waiter waiter(executor, bytes, use);
    waiters_.push_back(waiter);
    Status status = co_await waiter.ready;
    if (!status.ok()) co_return status;
    co_return waiter.slot;
}

void SlotPool::release(std::uint32_t unit, std::uint32_t units) {
    GANTRY_ASSERT(unit + units <= total_units());
    for (std::uint32_t at = unit; at < unit + units; ++at) {
        GANTRY_ASSERT(used_[at]);
        used_[at] = false;
        if (ahead_[at]) --ahead_units_;
        ahead_[at] = false;
    }
    free_units_ += units;
    // In order, but a sink may overtake sources that wait for the unreserved part: it is what
    // empties the pool.
    Waiter* next = nullptr;
    for (Waiter* waiter = waiters_.next(nullptr); waiter != nullptr; waiter = next) {
        next = waiters_.next(waiter);
        waiter->slot =
            take(static_cast<std::uint32_t>(divide_up(waiter->bytes, unit_bytes_)), waiter->use);
        if (waiter->slot.units == 0) continue;
        waiter->unlink();
        waiter->ready.complete(success());
    }
}

}  // namespace gantry::p2p

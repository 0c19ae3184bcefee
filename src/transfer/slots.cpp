// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/slots.hpp"

#include <algorithm>

namespace gantry::transfer {

PoolRegions::PoolRegions(std::uint32_t units, bool several) {
    constexpr std::uint32_t kPartsOfQuarter = 16;
    const std::uint32_t quarter = units / 4;
    head_ = several ? quarter / kPartsOfQuarter : 0;
    begins_[1] = units;
    if (head_ == 0) return;
    count_ = kMost;
    const std::uint32_t begins[kMost + 1] = {0,
                                             head_,
                                             quarter,
                                             quarter + head_,
                                             2 * quarter,
                                             2 * quarter + head_,
                                             3 * quarter + head_,
                                             units};
    std::copy(std::begin(begins), std::end(begins), begins_);
}

std::span<std::byte> PoolRegions::memory(std::span<std::byte> pool, Bytes unit, int region) const {
    const Bytes begin = begins_[region] * unit;
    // The last one has what is no whole unit, too.
    return region + 1 == count_ ? pool.subspan(begin)
                                : pool.subspan(begin, begins_[region + 1] * unit - begin);
}

SlotPool::SlotPool(std::span<std::byte> memory, Bytes unit_bytes, Lock lock)
    : memory_(memory),
      unit_bytes_(unit_bytes),
      lock_(std::move(lock)),
      locked_(memory, unit_bytes, lock_ != nullptr),
      used_(memory.size() / unit_bytes, false),
      lent_(used_.size()),
      free_units_(static_cast<std::uint32_t>(used_.size())) {}

// Below four units: one for sinks alone and one for sources alone, the one between them for chunks
// ahead. A pool of one unit serves sources; whoever needs sinks has two units at least.
SlotPool::Part SlotPool::part(SlotUse use) const {
    const std::uint32_t total = total_units(), quarter = total / 4;
    if (total == 1) return {0, use == SlotUse::ahead ? 0u : 1u};
    if (quarter == 0) {
        if (use == SlotUse::sink) return {0, 1};
        return {1, use == SlotUse::ahead ? total - 1 : total};
    }
    switch (use) {
        case SlotUse::sink: return {0, 2 * quarter};
        case SlotUse::ahead: return {2 * quarter, 3 * quarter + locked_.regions().head()};
        case SlotUse::source: break;
    }
    return {quarter, total};
}

// What a quarter holds behind its head: no more is sure to come free in one piece.
Bytes SlotPool::largest() const {
    return std::max(total_units() / 4 - locked_.regions().head(), std::min(total_units(), 1u)) *
           unit_bytes_;
}

Slot SlotPool::take(std::uint32_t units, SlotUse use) {
    if (units == 0 || units > free_units_) return {};
    // First fit: the slots that were used last are still in the caches of both processes.
    const Part part_of_use = part(use);
    const PoolRegions& regions = locked_.regions();
    int region = regions.of(part_of_use.begin);
    std::uint32_t run = 0;
    for (std::uint32_t at = part_of_use.begin; at < part_of_use.end; ++at) {
        if (at == regions.end(region)) {
            ++region;
            run = 0;
        }
        run = used_[at] ? 0 : run + 1;
        if (run < units) continue;
        if (lock_ != nullptr) locked_.take(region, lock_);
        const std::uint32_t first = at + 1 - units;
        for (std::uint32_t unit = first; unit <= at; ++unit)
            used_[unit] = true;
        free_units_ -= units;
        return Slot{memory_.data() + first * unit_bytes_, first, units, use};
    }
    return {};
}

bool SlotPool::source_waits() {
    for (Waiter* waiter = waiters_.next(nullptr); waiter != nullptr; waiter = waiters_.next(waiter))
        if (waiter->use != SlotUse::sink) return true;
    return false;
}

Slot SlotPool::try_acquire(Bytes bytes, SlotUse use) {
    // First come, first served among sources. Nobody queues behind a sink that waits: it may wait
    // for the peer, who may wait for what this one is about to send.
    if (use != SlotUse::sink && source_waits()) return {};
    return take(static_cast<std::uint32_t>(divide_up(bytes, unit_bytes_)), use);
}

Task<Result<Slot>> SlotPool::acquire(Executor& executor, Bytes bytes, SlotUse use) {
    if (bytes > largest())
        co_return failure(MPI_ERR_INTERN,
                          "a staging slot of {} bytes was asked for, the largest is {}", bytes,
                          largest());
    Slot slot = try_acquire(bytes, use);
    if (slot.units != 0) co_return slot;
    Waiter waiter(executor, bytes, use);
    waiters_.push_back(waiter);
    Status status = co_await waiter.ready;
    if (!status.ok()) co_return status;
    co_return waiter.slot;
}

void SlotPool::grant(const Slot& slot, int rank) {
    GANTRY_ASSERT(used_[slot.unit]);
    lent_[slot.unit] = {rank, slot.units};
}

void SlotPool::grant_early(const Slot& slot, int rank) {
    GANTRY_ASSERT(used_[slot.unit]);
    lent_[slot.unit] = {rank, slot.units, true};
}

void SlotPool::settle(const Slot& slot) {
    Lent& lent = lent_[slot.unit];
    GANTRY_ASSERT(lent.filling && lent.units == slot.units);
    lent.filling = false;
    if (lent.back) release(slot);
}

void SlotPool::take_back(int rank) {
    for (std::uint32_t unit = 0; unit < total_units(); ++unit)
        if (lent_[unit].units != 0 && lent_[unit].rank == rank) release(unit, lent_[unit].units);
}

void SlotPool::take_back(const Slot& slot) {
    if (lent_[slot.unit].units == slot.units) release(slot);
}

void SlotPool::release(std::uint32_t unit, std::uint32_t units) {
    GANTRY_ASSERT(unit + units <= total_units());
    if (lent_[unit].filling) {
        lent_[unit].back = true;
        return;
    }
    for (std::uint32_t at = unit; at < unit + units; ++at) {
        GANTRY_ASSERT(used_[at]);
        used_[at] = false;
    }
    lent_[unit] = {};
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

}  // namespace gantry::transfer

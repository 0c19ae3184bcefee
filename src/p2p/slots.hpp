// SPDX-License-Identifier: BSD-3-Clause
//
// SlotPool: staging memory cut into units; a slot is a run of consecutive units, as long as one
// chunk. Waiting for a slot is normal and first come, first served. Two rules keep it from
// deadlocking (DESIGN section 5, "Slots cannot deadlock"): a quarter of the pool is kept for sinks,
// which empty by local work alone; chunks copied ahead of their verdict hold at most a quarter.
#pragma once

#include "base/intrusive_list.hpp"
#include "base/task.hpp"
#include "base/units.hpp"

#include <span>
#include <vector>

namespace gantry::p2p {

// Unit of the pool of device slots.
inline constexpr Bytes kDeviceSlotUnit = 64 * kKiB;

enum class SlotUse : std::uint8_t { source, ahead, sink };

struct Slot {
    std::byte* memory = nullptr;
    std::uint32_t unit = 0;
    std::uint32_t units = 0;  // 0: no slot
    SlotUse use = SlotUse::source;
};

class SlotPool {
  public:
    SlotPool(Executor& executor, std::span<std::byte> memory, Bytes unit_bytes);

    Bytes unit_bytes() const { return unit_bytes_; }
    std::span<std::byte> memory() const { return memory_; }
    Bytes offset_of(const Slot& slot) const { return slot.unit * unit_bytes_; }
    std::uint32_t free_units() const { return free_units_; }
    std::uint32_t total_units() const { return static_cast<std::uint32_t>(used_.size()); }
    // The largest slot that can ever be had for this use.
    Bytes largest(SlotUse use) const;

    // A slot at once, or one without units.
    Slot try_acquire(Bytes bytes, SlotUse use);
    Task<Result<Slot>> acquire(Executor& executor, Bytes bytes, SlotUse use);
    void release(const Slot& slot) { release(slot.unit, slot.units); }
    void release(std::uint32_t unit, std::uint32_t units);

  private:
    struct Waiter : Link<Waiter> {
        Waiter(Executor& executor, Bytes wanted, SlotUse wanted_use)
            : ready(executor), bytes(wanted), use(wanted_use) {}
        Completion ready;
        Bytes bytes;
        SlotUse use;
        Slot slot;
    };
    Slot take(std::uint32_t units, SlotUse use);

    std::span<std::byte> memory_;
    Bytes unit_bytes_;
    std::vector<bool> used_;
    std::vector<bool> ahead_;  // per unit: held by a chunk ahead of its verdict
    std::uint32_t free_units_;
    std::uint32_t ahead_units_ = 0;
    IntrusiveList<Waiter> waiters_;
};

}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
//
// SlotPool: staging memory cut into units; a slot is a run of consecutive units, as long as one
// chunk. Waiting for a slot is normal and first come, first served. Each use has its part of the
// pool, which keeps two ranks that send to each other from deadlocking: a sink's slot empties by
// local work alone, so it always comes back.
//
//   | quarter: sinks | quarter: sinks, sources | quarter: ahead, sources | quarter: sources |
//
// A source slot is asked for by a chunk that may leave, so it always comes back. A sink slot is
// lent to the peer and comes back when the peer has found a source slot: never the last quarter's.
// A chunk copied ahead of its verdict may sit for long: it takes neither the sources' nor the
// sinks' last quarter.
//
// Page-locking memory that was never touched takes 0.4 ms for each MiB, so a pool of 4 MiB and more
// is page-locked in regions, each when its first slot is taken, and all of them with the third slot:
// a program that goes on staging waits for none of them later. No slot crosses their borders. The
// first region of a part is a sixteenth of a quarter: what a program's first small messages need.
//
//   | head | sinks | head | both | head | ahead         | sources |
#pragma once

#include "base/intrusive_list.hpp"
#include "base/task.hpp"
#include "base/units.hpp"
#include "plan/p2p_model.hpp"

#include <functional>
#include <span>
#include <vector>

namespace gantry::transfer {

using plan::kDeviceSlotUnit;

enum class SlotUse : std::uint8_t { source, ahead, sink };

// Where the regions of a pool begin, and its end behind them.
class PoolRegions {
  public:
    PoolRegions(std::uint32_t units, bool several);
    int count() const { return count_; }
    std::span<std::byte> memory(std::span<std::byte> pool, Bytes unit, int region) const;
    std::uint32_t end(int region) const { return begins_[region + 1]; }
    int of(std::uint32_t unit) const {
        int region = 0;
        while (region + 1 < count_ && unit >= begins_[region + 1])
            ++region;
        return region;
    }
    // Units of the head of a part; 0: there is one region.
    std::uint32_t head() const { return head_; }

  private:
    static constexpr int kMost = 7;
    std::uint32_t head_ = 0;
    int count_ = 1;
    std::uint32_t begins_[kMost + 1] = {};
};

struct Slot {
    std::byte* memory = nullptr;
    std::uint32_t unit = 0;
    std::uint32_t units = 0;  // 0: no slot
    SlotUse use = SlotUse::source;
};

// Which regions of a pool this process has page-locked: those of slots that it took.
class LockedRegions {
  public:
    LockedRegions(std::span<std::byte> pool, Bytes unit_bytes, bool several)
        : pool_(pool),
          unit_bytes_(unit_bytes),
          regions_(static_cast<std::uint32_t>(pool.size() / unit_bytes), several) {}
    const PoolRegions& regions() const { return regions_; }
    bool any() const { return locked_ != 0; }
    // A slot in that region is taken. `lock`: locks memory; false, it is to be asked again.
    template <class Lock>
    void take(int region, Lock lock) {
        const unsigned all = (1u << regions_.count()) - 1;
        if (locked_ == all) return;
        const unsigned wanted = ++taken_ < kTakenForAll ? 1u << region : all;
        for (int each = 0; each < regions_.count(); ++each)
            if ((wanted & ~locked_ & 1u << each) != 0 && lock(memory(each))) locked_ |= 1u << each;
    }
    // All that is locked, once.
    template <class Unlock>
    void drop(Unlock unlock) {
        for (int each = 0; each < regions_.count(); ++each)
            if ((locked_ & 1u << each) != 0) unlock(memory(each));
        locked_ = 0;
    }

  private:
    std::span<std::byte> memory(int region) const {
        return regions_.memory(pool_, unit_bytes_, region);
    }
    static constexpr int kTakenForAll = 3;  // slots
    std::span<std::byte> pool_;
    Bytes unit_bytes_;
    PoolRegions regions_;
    unsigned locked_ = 0;  // a bit each
    int taken_ = 0;        // slots, until all are locked
};

class SlotPool {
  public:
    // `lock`: page-locks memory before the first slot in it is given out; false: it is to be asked
    // again. Empty: the pool is one region that nobody locks.
    using Lock = std::function<bool(std::span<std::byte>)>;
    SlotPool(std::span<std::byte> memory, Bytes unit_bytes, Lock lock = {});

    Bytes unit_bytes() const { return unit_bytes_; }
    std::span<std::byte> memory() const { return memory_; }
    Bytes offset_of(const Slot& slot) const { return slot.unit * unit_bytes_; }
    LockedRegions& locked() { return locked_; }
    std::uint32_t free_units() const { return free_units_; }
    std::uint32_t total_units() const { return static_cast<std::uint32_t>(used_.size()); }
    // The first unit that slots for this use can have.
    std::uint32_t first(SlotUse use) const { return part(use).begin; }
    // The largest slot that can ever be had for this use.
    Bytes largest() const;

    // A slot at once, or one without units.
    Slot try_acquire(Bytes bytes, SlotUse use);
    Task<Result<Slot>> acquire(Executor& executor, Bytes bytes, SlotUse use);
    void release(const Slot& slot) { release(slot.unit, slot.units); }
    void release(std::uint32_t unit, std::uint32_t units);
    // The slot is that rank's until it gives it back (release), is gone, or was not told
    // (take_back; nothing happens to one that is not lent).
    void grant(const Slot& slot, int rank);
    void take_back(int rank);
    void take_back(const Slot& slot);
    // The same for a slot that is still being filled: what comes back is free when settled, too.
    void grant_early(const Slot& slot, int rank);
    void settle(const Slot& slot);

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
    bool source_waits();
    struct Part {
        std::uint32_t begin, end;
    };
    Part part(SlotUse use) const;

    std::span<std::byte> memory_;
    Bytes unit_bytes_;
    Lock lock_;
    LockedRegions locked_;
    std::vector<bool> used_;
    struct Lent {
        int rank = -1;
        std::uint32_t units = 0;  // 0: not lent
        bool filling = false, back = false;
    };
    std::vector<Lent> lent_;  // by first unit
    std::uint32_t free_units_;
    IntrusiveList<Waiter> waiters_;
};

}  // namespace gantry::transfer

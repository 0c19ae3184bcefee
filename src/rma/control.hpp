// SPDX-License-Identifier: BSD-3-Clause
//
// ControlBlock: the two locks of one rank's part of a window. The block lies in memory of the node, so
// ranks of the node take the locks themselves; ranks of other nodes ask the owner by message, and it
// takes them for them. There is no other rule, whatever way data take:
//
//   access        the lock of MPI_Win_lock. High half: rank in the window + 1 of who holds it
//                 exclusively; low half: how many hold it shared.
//   next_number, waiting   of those who wait for that lock: lock_queue.hpp
//   met           of the lowest rank of the node: how often ranks have come to a fence whose ranks
//                 are all of the node, in all.
//   accumulating  rank in the window + 1 of who changes memory by an accumulate right now, 0: nobody. Every
//                 accumulate, fetch and compare-and-swap holds it while it reads and writes, by
//                 whichever way it came: what one of them does to an item is never torn by another.
//
// What a rank that died holds is given back by whoever of the node needs it first (locks.cpp); an item that
// it was changing may be half changed.
#pragma once

#include <atomic>
#include <cstdint>

namespace gantry::rma {

struct alignas(64) ControlBlock {
    std::atomic<std::uint64_t> access{0};
    std::atomic<std::uint32_t> next_number{0}, waiting{0};
    alignas(64) std::atomic<std::uint32_t> accumulating{0};
    alignas(64) std::atomic<std::uint64_t> met{0};

    bool try_lock_exclusive(int rank) {
        std::uint64_t free = 0;
        // Pairs with the release in unlock_exclusive() and unlock_shared().
        return access.compare_exchange_strong(free, holder(rank), std::memory_order_acquire,
                                              std::memory_order_relaxed);
    }
    bool try_lock_shared() {
        std::uint64_t seen = access.load(std::memory_order_relaxed);
        while (seen >> 32 == 0)
            // The release: a rank says first that it is about to share (NodeMemory::Share).
            if (access.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                             std::memory_order_relaxed))
                return true;
        return false;
    }
    void unlock_exclusive() { access.store(0, std::memory_order_release); }
    // Of a rank that died; false: another one has given it back already.
    bool unlock_exclusive_of(int rank) {
        std::uint64_t held = holder(rank);
        return access.compare_exchange_strong(held, 0, std::memory_order_release,
                                              std::memory_order_relaxed);
    }
    void unlock_shared() { access.fetch_sub(1, std::memory_order_release); }
    // Who holds it exclusively, by rank in the window; -1: nobody.
    int exclusive_holder() const {
        return static_cast<int>(access.load(std::memory_order_relaxed) >> 32) - 1;
    }

    bool try_accumulate(int rank) {
        std::uint32_t free = 0;
        // Pairs with the release in end_accumulate().
        return accumulating.compare_exchange_strong(free, static_cast<std::uint32_t>(rank + 1),
                                                    std::memory_order_acquire,
                                                    std::memory_order_relaxed);
    }
    void end_accumulate() { accumulating.store(0, std::memory_order_release); }
    int accumulates() const {
        return static_cast<int>(accumulating.load(std::memory_order_relaxed)) - 1;
    }
    // Of a rank that died.
    void end_accumulate_of(int rank) {
        auto held = static_cast<std::uint32_t>(rank + 1);
        accumulating.compare_exchange_strong(held, 0, std::memory_order_release,
                                             std::memory_order_relaxed);
    }

  private:
    static std::uint64_t holder(int rank) { return (static_cast<std::uint64_t>(rank) + 1) << 32; }
};

}  // namespace gantry::rma

// SPDX-License-Identifier: BSD-3-Clause
//
// EngineLock: who may use the engine when the program has several threads, or a background thread exists
// beside them. One visitor at a time. A thread of the program may enter again from inside (a
// reduction function that asks MPI for a size).
//
//   taken_   0 open - 1 taken - 2 taken, and somebody sleeps waiting for the lock
//
// Visits take microseconds, so a thread that stands waiting for the lock looks for a while, offers its
// processor, and sleeps only then. Who is inside for longer (it waits, and drives the engine) steps
// aside for those who stand before it. The background stays away while anybody does.
#pragma once

#include "base/futex.hpp"
#include "base/relax.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>

namespace gantry {

class EngineLock {
  public:
    EngineLock() = default;
    EngineLock(const EngineLock&) = delete;
    EngineLock& operator=(const EngineLock&) = delete;

    // --- the program's threads
    void enter() {
        if (mine()) {
            ++depth_;
            return;
        }
        if (!take()) [[unlikely]]
            stand_before();
        owner_.store(this_thread(), std::memory_order_relaxed);
        depth_ = 1;
    }
    void leave() {
        if (--depth_ > 0) return;
        owner_.store(0, std::memory_order_relaxed);
        open();
    }
    // Whether the calling thread of the program is inside. Only it can have written its own name.
    bool mine() const { return owner_.load(std::memory_order_relaxed) == this_thread(); }
    // Whether the next leave() gives up the lock to others; for who is inside.
    bool outermost() const { return depth_ == 1; }

    // Whether a thread of the program stands before it.
    bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }
    // For who is inside, outermost: out, and in again behind one of those who stand before it, if
    // one of them is awake.
    void step_aside() {
        leave();
        for (int looks = 0; looks < kLooks && wanted(); ++looks)
            relax();
        if (wanted()) sched_yield();
        enter();
    }

    // --- the background
    // False while a program's thread is inside or waits.
    bool try_enter() { return !wanted() && take(); }
    void leave_background() { open(); }

  private:
    static constexpr int kLooks = 200;
    static constexpr int kYields = 50;

    static std::uintptr_t this_thread() { return static_cast<std::uintptr_t>(pthread_self()); }
    bool take() {
        std::uint32_t open = 0;
        return taken_.load(std::memory_order_relaxed) == 0 &&
               taken_.compare_exchange_strong(open, 1);
    }
    void open() {
        if (taken_.exchange(0) == 2) [[unlikely]]
            futex::wake_one(taken_);
    }
    void stand_before() {
        waiting_.fetch_add(1);
        if (!comes_soon())
            // Who has slept leaves the mark for others that still do.
            while (taken_.exchange(2) != 0)
                futex::sleep_while(taken_, 2);
        waiting_.fetch_sub(1);
    }
    bool comes_soon() {
        for (int looks = 0; looks < kLooks; ++looks) {
            if (take()) return true;
            relax();
        }
        for (int yields = 0; yields < kYields; ++yields) {
            if (take()) return true;
            sched_yield();
        }
        return false;
    }

    // Sequentially consistent, like Bell's words: who saw the lock taken hears a ring that follows
    // its opening (mpi/engine/progress_thread.cpp).
    std::atomic<std::uint32_t> taken_{0};
    std::atomic<std::uint32_t> waiting_{0};  // the program's threads waiting for the lock
    std::atomic<std::uintptr_t> owner_{0};   // the program's thread inside
    int depth_ = 0;                          // its visits; of who is inside
};

}  // namespace gantry

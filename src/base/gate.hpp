// SPDX-License-Identifier: BSD-3-Clause
//
// Gate: who may use the engine when a background thread exists beside the program's threads. One
// visitor at a time; a program's thread that stands before the gate is let in next, because the
// background stays away while anybody waits. A program's thread may enter again from inside (an
// error handler that calls MPI).
//
// Nobody sleeps at the gate: the background leaves after one turn of progress, in microseconds, and
// a program's thread inside drives the engine itself.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>

namespace gantry {

class Gate {
  public:
    Gate() = default;
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    // --- the program's threads
    void enter() {
        const auto me = static_cast<std::uintptr_t>(pthread_self());
        // Only this thread can have written its own name.
        if (owner_.load(std::memory_order_relaxed) == me) {
            ++depth_;
            return;
        }
        waiting_.fetch_add(1, std::memory_order_relaxed);
        for (int looks = 0; taken_.exchange(1) != 0; ++looks)
            if (looks >= kLooksBeforeYield) sched_yield();
        waiting_.fetch_sub(1, std::memory_order_relaxed);
        owner_.store(me, std::memory_order_relaxed);
        depth_ = 1;
    }
    void leave() {
        if (--depth_ > 0) return;
        owner_.store(0, std::memory_order_relaxed);
        taken_.store(0);
    }
    // Whether the calling thread of the program is inside.
    bool mine() const {
        return owner_.load(std::memory_order_relaxed) ==
               reinterpret_cast<std::uintptr_t>(reinterpret_cast<void*>(pthread_self()));
    }
    // Whether the next leave() opens the gate to others; for who is inside.
    bool outermost() const { return depth_ == 1; }

    // Whether a thread of the program stands before it.
    bool wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

    // --- the background
    // False while a program's thread is inside or waits.
    bool try_enter() {
        if (wanted() || taken_.load(std::memory_order_relaxed) != 0) return false;
        return taken_.exchange(1) == 0;
    }
    void leave_background() { taken_.store(0); }

  private:
    static constexpr int kLooksBeforeYield = 200;
    // Sequentially consistent, like Bell's words: who saw the gate taken hears a ring that follows
    // its opening (mpi/engine/progress_thread.cpp).
    std::atomic<std::uint32_t> taken_{0};
    std::atomic<std::uint32_t> waiting_{0};  // the program's threads before the gate
    std::atomic<std::uintptr_t> owner_{0};   // the program's thread inside
    int depth_ = 0;                          // its visits; of who is inside
};

}  // namespace gantry

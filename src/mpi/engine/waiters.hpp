// SPDX-License-Identifier: BSD-3-Clause
//
// Waiters: the program's threads that wait inside MPI at the same time (MPI_THREAD_MULTIPLE).
//
//   driver    at most one: with the lock held, turns the engine, steps aside for threads that call MPI;
//             stops to drive before it calls functions of the program. Who comes to wait drives, and
//             whoever drove before sleeps: so a thread that calls MPI again and again ends its own
//             operations, and wakes nobody
//   sleepers  without the lock, each before a word of its own: looks at it for a moment where
//             processors are left over, then sleeps
//   standby poller    one of the sleepers: now and then it looks whether somebody still drives, and takes over
//             when nobody has since it looked before. It ends to be one when the same driver goes on
//
// Who finds the operation of a sleeper ended calls it (writes its word, wakes it). A driver whose
// own operation has ended leaves the engine to the standby poller, or where there is none calls a sleeper to
// drive. Whoever is called takes the lock and looks itself, so a call too many does no harm.
#pragma once

#include "base/engine_lock.hpp"
#include "base/intrusive_list.hpp"
#include "mpi/engine/pending.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace gantry::mpi {

class Waiters {
  public:
    explicit Waiters(EngineLock& lock) : engine_lock_(lock) {}
    Waiters(const Waiters&) = delete;
    Waiters& operator=(const Waiters&) = delete;

    // How many of them may look at their words: processors that nobody else of the node needs.
    void set_spare_processors(int number) { spare_processors_ = number; }
    // When the standby poller looks at the driver: first after `first`, then ever more seldom up to `last`.
    void set_standby_looks(Nanoseconds first, Nanoseconds last) {
        standby_looks_ = {.first = first, .last = std::max(first, last)};
    }
    // Until it is over. The calling thread holds the lock, in its only visit, and does so again at
    // the end. `others`: the lock, to be opened when nothing happens; null: nobody could come.
    void wait(Pending& pending, EngineLock* others);
    // Calls those whose operations have ended; for who is inside and gives up the lock.
    void call_ended() {
        if (!sleepers_.empty()) [[unlikely]]
            look_through();
    }
    // For the thread that holds the lock.
    std::uint64_t calls() const { return calls_; }
    std::uint64_t deputies_resigned() const { return deputies_resigned_; }

  private:
    enum Word : std::uint32_t { looking, asleep, called };
    struct Looks {
        Nanoseconds first = 0, last = 0;
    };
    struct Sleeper : Link<Sleeper> {
        explicit Sleeper(Pending& of) : pending(of) {}
        Pending& pending;
        std::atomic<std::uint32_t> word{looking};
        bool to_drive = false;  // why it was called
    };

    void drive(Pending& pending, EngineLock* others);
    void sleep(Pending& pending);
    bool sleep_as_standby(const Sleeper& me, Looks looks);
    void resign();
    void look_through();
    void call_a_driver();
    void call(Sleeper& sleeper);

    const Pending* driver() const { return driver_.load(std::memory_order_relaxed); }
    std::uint32_t drives() const { return drives_.load(std::memory_order_relaxed); }

    EngineLock& engine_lock_;
    IntrusiveList<Sleeper> sleepers_;
    // Written with the lock held. The standby poller reads them outside as well, and again inside.
    std::atomic<const Pending*> driver_{nullptr};
    std::atomic<std::uint32_t> drives_{0};  // how often somebody has begun to drive
    const Sleeper* standby_ = nullptr;
    int looking_ = 0;  // sleepers that were allowed to look
    std::uint64_t calls_ = 0, deputies_resigned_ = 0;
    int spare_processors_ = 0;
    Looks standby_looks_;
};

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// Waiters: the program's threads that wait inside MPI at the same time (MPI_THREAD_MULTIPLE).
//
//   driver    at most one: inside the gate, turns the engine, steps aside for threads that call MPI;
//             stops to drive before it calls functions of the program
//   sleepers  outside of the gate, each before a word of its own: looks at it for a moment where
//             processors are left over, then sleeps
//
// Who finds the operation of a sleeper ended calls it (writes its word, wakes it). A driver whose
// own operation has ended calls one of the others to drive. Whoever is called comes into the gate
// and looks itself, so a call too many does no harm.
#pragma once

#include "base/gate.hpp"
#include "base/intrusive_list.hpp"
#include "mpi/engine/pending.hpp"

#include <atomic>
#include <cstdint>

namespace gantry::mpi {

class Waiters {
  public:
    explicit Waiters(Gate& gate) : gate_(gate) {}
    Waiters(const Waiters&) = delete;
    Waiters& operator=(const Waiters&) = delete;

    // How many of them may look at their words: processors that nobody else of the node needs.
    void set_spare_processors(int number) { spare_processors_ = number; }
    // Until it is over. The calling thread is inside the gate, in its only visit, and is so again at
    // the end. `others`: the gate, to be opened when nothing happens; null: nobody could come.
    void wait(Pending& pending, Gate* others);
    // Calls those whose operations have ended; for who is inside and opens the gate.
    void call_ended() {
        if (!sleepers_.empty()) [[unlikely]]
            look_through();
    }

  private:
    enum Word : std::uint32_t { looking, asleep, called };
    struct Sleeper : Link<Sleeper> {
        explicit Sleeper(Pending& of) : pending(of) {}
        Pending& pending;
        std::atomic<std::uint32_t> word{looking};
        bool to_drive = false;  // why it was called
    };

    void drive(Pending& pending, Gate* others);
    void sleep(Pending& pending);
    void look_through();
    void call_a_driver();
    static void call(Sleeper& sleeper);

    Gate& gate_;
    IntrusiveList<Sleeper> sleepers_;
    bool driven_ = false;  // there is a driver
    int looking_ = 0;      // sleepers that were allowed to look
    int spare_processors_ = 0;
};

}  // namespace gantry::mpi

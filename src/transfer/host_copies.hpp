// SPDX-License-Identifier: BSD-3-Clause
//
// HostCopies: copies by processor between a program's pageable memory and pinned slots, shared by
// two threads: the one that drives the engine, and the progress thread, which has nothing else to
// do while the program is inside MPI (GANTRY_PROGRESS=thread).
//
//   engine   start(): free -> posted              progress(): done -> completed, free
//   either             posted -> taken -> (copies) -> done
//
// Who takes a piece is whoever comes first, so nobody waits for a helper that sleeps or was never
// given a processor. The state of a cell hands it over: the engine writes the cell before `posted`
// (release), its taker reads it after `taken` (acquire), and the bytes are there when the engine
// reads `done` (acquire). Completions are told by the engine's thread only.
#pragma once

#include "base/task.hpp"
#include "base/units.hpp"

#include <array>
#include <atomic>

namespace gantry::transfer {

// The other thread. call() may come from any thread that drives the engine, and must not wait.
class CopyHelper {
  public:
    virtual void call() = 0;

  protected:
    ~CopyHelper() = default;
};

class HostCopies {
  public:
    struct Copy {
        std::byte* to = nullptr;
        const std::byte* from = nullptr;
        Bytes bytes = 0;
    };
    struct Counts {
        std::uint64_t own = 0, helped = 0;
    };

    // Null: nobody helps, and nothing is to be started here.
    void share_with(CopyHelper* helper) { helper_ = helper; }
    bool shared() const { return helper_ != nullptr; }

    // --- the engine's thread ---
    // False when all cells are taken: nothing was started.
    bool start(const Copy& copy, Completion& done);
    // Tells what has ended, and copies the oldest piece that nobody has taken.
    int progress() { return under_way_ == 0 ? 0 : turn(); }
    const Counts& counts() const { return counts_; }

    // --- the helper ---
    // Copies one piece; false when none waits.
    bool help();

  private:
    enum class State : std::uint8_t { free, posted, taken, done };
    struct alignas(64) Cell {
        std::atomic<State> state{State::free};
        Copy copy;
        Completion* done = nullptr;
    };
    Cell* take();
    int turn();

    CopyHelper* helper_ = nullptr;
    std::array<Cell, 16> cells_;
    std::atomic<unsigned> next_{0};  // the cell that start() uses next: behind it is the oldest
    unsigned under_way_ = 0;
    Counts counts_;
};

}  // namespace gantry::transfer

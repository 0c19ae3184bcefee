// SPDX-License-Identifier: BSD-3-Clause
//
// Boundary: what calls of MPI pass where the calling thread may not be alone with the engine.
//
//     { const Visit visit;  ... the call ... }
//
//   before MPI_Init, after MPI_Finalize      every call: threads may come at any time
//   MPI_THREAD_MULTIPLE, also that of MPI_T  every call; those that wait go to Waiters
//   GANTRY_PROGRESS=thread                   every call, beside the progress thread
//   GANTRY_TRACE_FILE                        every call, so that it is on the timeline
//   else                                     only calls that are legal before MPI_Init; others look
//                                            at one pointer
//
// Functions of the program (error handlers, callbacks of attributes and generalized requests,
// reduction functions) are called outside of it (LetOthersIn): they may call MPI, and wait for another
// thread that does.
#pragma once

#include "base/engine_lock.hpp"
#include "base/status.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/progress_thread.hpp"
#include "mpi/engine/waiters.hpp"

#include <atomic>
#include <optional>

namespace gantry {
class Timeline;
}

namespace gantry::mpi {

class Boundary {
  public:
    Boundary() : waiters_(engine_lock_) {}
    Boundary(const Boundary&) = delete;
    Boundary& operator=(const Boundary&) = delete;

    void enter();
    void leave();
    // For who is inside, in its only visit: now, if calls are traced; else 0.
    Nanoseconds call_begins() const;
    // The call that began then ends.
    void call_ends(const char* function, Nanoseconds begin) const;
    // Whether the calling thread is inside, in its only visit.
    bool visited_once() const { return engine_lock_.mine() && engine_lock_.outermost(); }
    // For who is inside, in its only visit: until that is over; others come in meanwhile.
    void wait(Pending& pending) { waiters_.wait(pending, lock_to_give_up()); }
    // The lock, which the calling thread may open for a moment; null: it is not inside, or nobody
    // but the progress thread could come.
    EngineLock* lock_to_give_up() { return threads_ && visited_once() ? &engine_lock_ : nullptr; }

    // For who is inside.
    const Waiters& waiters() const { return waiters_; }

    // Whether a call may go without entering: it is not one inside another, and nothing of the
    // program's runs in the background, which may hold the handles that the call holds, too.
    bool may_stay_outside() const;
    // Whether such a call may leave its message in the engine's submission queue; then posted() tells the
    // thread.
    bool takes_posts() const;
    void posted() { thread_->left(true); }

    // Surrounds an engine that runs, for threads of that level, with a progress thread if it is
    // configured; may be called again.
    Status surround(Engine& engine, int thread_level);
    // Threads of a tool (MPI_T_init_thread) come beside those of the program, at any time from now on.
    void admit_tools();
    // Whether every call must pass.
    bool needed() const { return threads_ || background_ || timeline_ != nullptr; }
    // There is no engine any more.
    void surround_nothing();
    void stop_thread();

  private:
    enum class HandsOver : std::uint8_t { never, while_watched, always };

    EngineLock engine_lock_;
    Waiters waiters_;
    Engine* engine_ = nullptr;  // null: none runs
    // Several threads of the program may be in MPI at once. Both are asked outside, too.
    std::atomic<bool> threads_{true};
    std::atomic<bool> background_{false};  // a progress thread runs
    bool tools_ = false;                   // threads of tools may be
    Timeline* timeline_ = nullptr;         // of the engine; null: calls are not traced
    HandsOver hands_over_ = HandsOver::never;
    // Stays when it has ended: a call that leaves may still tell it.
    std::optional<ProgressThread> thread_;
};

// What calls pass that need a running MPI; null: nothing.
inline Boundary* boundary_now() {
    return process().boundary.load(std::memory_order_relaxed);
}

// The calling thread's stay inside MPI. Whether the boundary must be passed may change meanwhile
// (MPI_Init, MPI_Finalize); who has entered leaves.
class Visit {
  public:
    Visit() : Visit(boundary_now(), nullptr) {}
    // Null: without passing any. `function`: the call of the program that it is; null: part of one.
    Visit(Boundary* boundary, const char* function) : boundary_(boundary) {
        if (boundary_ != nullptr) [[unlikely]] {
            boundary_->enter();
            function_ = function;
            if (function != nullptr) begin_ = boundary_->call_begins();
        }
    }
    ~Visit() {
        if (boundary_ != nullptr) [[unlikely]] {
            if (begin_ != 0) boundary_->call_ends(function_, begin_);
            boundary_->leave();
        }
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    bool passed() const { return boundary_ != nullptr; }

  private:
    Boundary* boundary_;
    const char* function_ = nullptr;
    Nanoseconds begin_ = 0;
};

// Around a call of a function of the program. What was looked up before may be gone behind it.
class LetOthersIn {
  public:
    LetOthersIn();
    ~LetOthersIn();
    LetOthersIn(const LetOthersIn&) = delete;
    LetOthersIn& operator=(const LetOthersIn&) = delete;

  private:
    Boundary* left_ = nullptr;
    FailedOn failed_on_;  // the process's, which belongs to this call
};

// MPI runs with this engine, for threads of this level from now on (or a higher one of before).
Status raise_boundary(Engine& engine, int thread_level);
// It ends: the progress thread stops.
void drop_boundary();
// MPI_T is used by several threads, whatever the level of MPI is.
void admit_tools();

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// What runs an engine's coroutines: a queue of coroutines that may go on, and a pool of frames.
// Only `run_ready()`, called from `progress()`, resumes a coroutine that has waited; nothing
// resumes one from inside another's completion, so the stack stays flat in every build (DESIGN 2.7:
// no symmetric transfer). One thread at a time uses an Executor.
#pragma once

#include "base/clock.hpp"
#include "base/units.hpp"

#include <coroutine>
#include <cstddef>
#include <vector>

namespace gantry {

// One coroutine waiting to be resumed; lives in the awaiter or promise of that coroutine.
struct Resumable {
    std::coroutine_handle<> handle;
    Resumable* next = nullptr;
};

class Executor {
  public:
    explicit Executor(const Clock& clock) : clock_(clock) {}
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    ~Executor();

    const Clock& clock() const { return clock_; }
    Nanoseconds now() const { return clock_.now(); }

    void make_ready(Resumable& coroutine) {
        coroutine.next = nullptr;
        (last_ready_ != nullptr ? last_ready_->next : first_ready_) = &coroutine;
        last_ready_ = &coroutine;
    }
    bool has_ready() const {
        return first_ready_ != nullptr || (first_of_program_ != nullptr && !in_background_);
    }
    // Resumes what was ready at the call; what becomes ready meanwhile waits for the next one, so
    // that a coroutine that yields lets progress() poll in between. Returns how many were resumed.
    int run_ready() {
        if (first_of_program_ != nullptr && !in_background_) [[unlikely]]
            take_what_was_left();
        Resumable* coroutine = first_ready_;
        first_ready_ = last_ready_ = nullptr;
        int resumed = 0;
        while (coroutine != nullptr) {
            Resumable* following = coroutine->next;  // the awaiter dies when its coroutine goes on
            coroutine->handle.resume();
            coroutine = following;
            ++resumed;
        }
        return resumed;
    }

    // Whether a thread of our own drives the engine now, not one of the program's.
    bool in_background() const { return in_background_; }
    void set_background(bool background) { in_background_ = background; }
    // Goes on at the next run_ready() of a program's thread.
    void leave_to_program(Resumable& coroutine) {
        coroutine.next = first_of_program_;
        first_of_program_ = &coroutine;
    }

    // Frames by size class; null when memory is exhausted (the coroutine then returns
    // MPI_ERR_NO_MEM).
    void* allocate_frame(std::size_t bytes) noexcept;
    void free_frame(void* frame) noexcept;
    std::size_t live_frames() const { return live_frames_; }

  private:
    static constexpr std::size_t kClassBytes = 256;
    static constexpr std::size_t kClasses = 16;
    struct FreeFrame {
        FreeFrame* next;
    };
    void take_what_was_left() {
        while (first_of_program_ != nullptr) {
            Resumable* coroutine = first_of_program_;
            first_of_program_ = coroutine->next;
            make_ready(*coroutine);
        }
    }
    const Clock& clock_;
    Resumable* first_ready_ = nullptr;
    Resumable* last_ready_ = nullptr;
    Resumable* first_of_program_ = nullptr;
    bool in_background_ = false;
    FreeFrame* free_[kClasses] = {};
    std::size_t live_frames_ = 0;
};

}  // namespace gantry

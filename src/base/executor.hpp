// SPDX-License-Identifier: BSD-3-Clause
//
// What runs an engine's coroutines: a queue of coroutines that may go on, and a pool of frames.
// Only `run_ready()`, called from `progress()`, resumes a coroutine that has waited; nothing
// resumes one from inside another's completion, so the stack stays flat in every build
// (there is no symmetric transfer). One thread at a time uses an Executor.
#pragma once

#include "base/clock.hpp"
#include "base/units.hpp"

#include <coroutine>
#include <cstddef>
#include <vector>

namespace gantry {

// One coroutine waiting to be resumed; lives in the awaiter or promise of that coroutine. What
// happens too often for a coroutine has a function instead, which is called where one would go on.
struct Resumable {
    std::coroutine_handle<> handle;
    Resumable* next = nullptr;
    void (*function)(Resumable&) = nullptr;
    bool waits() const { return handle || function != nullptr; }
    void resume() {
        if (function != nullptr)
            function(*this);
        else
            handle.resume();
    }
};

// A function of the program that has to be called before a coroutine goes on.
struct ProgramWork : Resumable {
    void (*function_of_program)(const void* what) = nullptr;
    const void* what = nullptr;
    void call() const { function_of_program(what); }
};

class Executor {
  public:
    explicit Executor(const Clock& clock) : clock_(clock) {}
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    ~Executor();

    const Clock& clock() const { return clock_; }
    Nanoseconds now() const { return clock_.now(); }

    void make_ready(Resumable& coroutine) { ready_.push(coroutine); }
    // Goes on in the next run_ready(), not in this one: progress() polls in between.
    void make_ready_later(Resumable& coroutine) { later_.push(coroutine); }
    bool has_ready() const { return !ready_.empty() || !later_.empty(); }
    // Resumes what is ready and what becomes so meanwhile: the end of a copy goes through all the
    // tasks that wait for one another in one turn, not one task a turn. Returns how many were
    // resumed.
    int run_ready() {
        ready_.append(later_);
        int resumed = 0;
        while (!ready_.empty()) {
            ready_.pop().resume();
            ++resumed;
        }
        return resumed;
    }

    // Whether a thread of our own drives the engine now, not one of the program's.
    bool in_background() const { return in_background_; }
    void set_background(bool background) { in_background_ = background; }
    // Whether that thread looks at the engine very soon, on a processor that the program does not
    // use.
    void set_watched(bool watched) { watched_ = watched; }
    // Whether work that is started now should be left to it (HandOver).
    bool hands_over() const { return hands_over_; }

    // Whether functions of the program wait until one of its threads calls them from outside of the
    // engine; else they are called at once.
    bool program_calls_wait() const { return in_background_ || several_threads_; }
    // Whether several threads of the program use the engine.
    bool several_threads() const { return several_threads_; }
    void set_several_threads(bool several) { several_threads_ = several; }
    void leave_to_program(ProgramWork& work) { of_program_.push(work); }
    bool has_program_work() const { return !of_program_.empty(); }
    // The oldest; for who calls it and then makes it ready.
    ProgramWork& take_program_work() { return static_cast<ProgramWork&>(of_program_.pop()); }

    // Frames by size class; null when memory is exhausted (the coroutine then returns
    // MPI_ERR_NO_MEM).
    void* allocate_frame(std::size_t bytes) noexcept;
    void free_frame(void* frame) noexcept;
    std::size_t live_frames() const { return live_frames_; }

  private:
    friend class HandOver;
    struct Queue {
        Resumable* first = nullptr;
        Resumable* last = nullptr;
        bool empty() const { return first == nullptr; }
        void push(Resumable& coroutine) {
            coroutine.next = nullptr;
            (last != nullptr ? last->next : first) = &coroutine;
            last = &coroutine;
        }
        // Before it goes on: its awaiter dies then.
        Resumable& pop() {
            Resumable& coroutine = *first;
            first = coroutine.next;
            if (first == nullptr) last = nullptr;
            return coroutine;
        }
        void append(Queue& other) {
            if (other.empty()) return;
            (last != nullptr ? last->next : first) = other.first;
            last = other.last;
            other = {};
        }
    };
    static constexpr std::size_t kClassBytes = 256;
    static constexpr std::size_t kClasses = 16;
    struct FreeFrame {
        FreeFrame* next;
    };

    const Clock& clock_;
    Queue ready_, later_;
    Queue of_program_;  // each a ProgramWork
    bool in_background_ = false;
    bool several_threads_ = false;
    bool watched_ = false;
    bool hands_over_ = false;
    FreeFrame* free_[kClasses] = {};
    std::size_t live_frames_ = 0;
};

// Around a call of the program that only posts: what it starts, driver calls and copies of
// microseconds, is left to the thread that watches the engine, and the program goes on. Whoever
// waits next drives the engine itself.
class HandOver {
  public:
    explicit HandOver(Executor& executor) : executor_(executor) {
        executor.hands_over_ = executor.watched_;
    }
    ~HandOver() { executor_.hands_over_ = false; }
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;

  private:
    Executor& executor_;
};

}  // namespace gantry

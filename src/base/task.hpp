// SPDX-License-Identifier: BSD-3-Clause
//
// Task<T>: an asynchronous operation written top-down.
//
//   Task<Status> send_chunk(Executor& executor, Copy copy, Peer& peer) {
//       Completion copied(executor);
//       device.copy(copy, copied);
//       Status status = co_await copied;
//       GANTRY_CO_TRY(status);
//       ...
//       co_return success();
//   }
//
// Rules. The Executor is the first parameter (after `this`): frames come from its pool. Arguments
// are taken by value, or are references to things that outlive the task. `co_await task` starts the
// child at once and goes on at once when it is done; else the parent is queued when the child ends,
// and `Executor::run_ready()` resumes it. Await into a named variable; no co_await inside a switch
// or conditional expression; no capturing lambdas (each was miscompiled by GCC 12.2). A frame that
// cannot be allocated makes a task that is done with MPI_ERR_NO_MEM (Task<Status> and
// Task<Result<T>> only).
#pragma once

#include "base/executor.hpp"
#include "base/status.hpp"

#include <coroutine>
#include <optional>
#include <utility>

namespace gantry {

class Scope;

// Told that a task has ended, while it ends: it may note that and take the result, but must not
// destroy the task yet.
class TaskWatcher {
  public:
    virtual void task_ended() = 0;

  protected:
    ~TaskWatcher() = default;
};

namespace task_detail {

inline Executor& executor_of(Executor& executor) {
    return executor;
}
template <class First, class... Rest>
Executor& frame_executor(First& first, Rest&... rest) {
    if constexpr (std::is_convertible_v<First&, Executor&>)
        return first;
    else
        return frame_executor(rest...);
}

struct PromiseBase {
    // Each frame remembers its executor right behind itself, for operator delete.
    template <class... Args>
    static void* operator new(std::size_t bytes, Args&... args) noexcept {
        Executor& executor = frame_executor(args...);
        void* frame = executor.allocate_frame(bytes + sizeof(Executor*));
        if (frame != nullptr)
            *reinterpret_cast<Executor**>(static_cast<std::byte*>(frame) + bytes) = &executor;
        return frame;
    }
    static void operator delete(void* frame, std::size_t bytes) noexcept {
        Executor* executor = *reinterpret_cast<Executor**>(static_cast<std::byte*>(frame) + bytes);
        executor->free_frame(frame);
    }

    template <class... Args>
    explicit PromiseBase(Args&... args) : executor(frame_executor(args...)) {}

    std::suspend_always initial_suspend() const noexcept { return {}; }
    struct AtEnd {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
            PromiseBase& promise = self.promise();
            if (promise.parent != nullptr) promise.executor.make_ready(*promise.parent);
            if (promise.watcher != nullptr) promise.watcher->task_ended();
        }
        void await_resume() const noexcept {}
    };
    AtEnd final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept {
        assertion_failed("no exception leaves a task", __FILE__, __LINE__);
    }

    Executor& executor;
    Resumable* parent = nullptr;  // who waits for the end of this task
    TaskWatcher* watcher = nullptr;
};

}  // namespace task_detail

template <class T>
class [[nodiscard]] Task {
  public:
    struct promise_type : task_detail::PromiseBase {
        using task_detail::PromiseBase::PromiseBase;
        Task get_return_object() {
            return Task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        static Task get_return_object_on_allocation_failure() {
            return Task(
                T(Status::make(MPI_ERR_NO_MEM, "out of memory for an operation in flight")));
        }
        void return_value(T result) { value.emplace(std::move(result)); }
        std::optional<T> value;
    };

    Task() = default;
    explicit Task(T ready) : ready_(std::move(ready)) {}
    Task(Task&& other) noexcept
        : handle_(std::exchange(other.handle_, {})),
          ready_(std::move(other.ready_)),
          started_(other.started_) {}
    Task& operator=(Task&& other) noexcept {
        if (this != &other) {
            drop();
            handle_ = std::exchange(other.handle_, {});
            ready_ = std::move(other.ready_);
            started_ = other.started_;
        }
        return *this;
    }
    // A task may be destroyed only before it starts or after it ends: what it issued may still use
    // its frame.
    ~Task() { drop(); }

    // Runs until the first wait; to be called once.
    void start() {
        GANTRY_ASSERT(!started_);
        started_ = true;
        if (handle_) handle_.resume();
    }
    bool started() const { return started_; }
    bool done() const { return !handle_ || handle_.done(); }
    // The result of a task that is done.
    T take() { return handle_ ? std::move(*handle_.promise().value) : std::move(*ready_); }
    // Queues `waiter` when the task ends. The task has started and is not done.
    void when_done(Resumable& waiter) { handle_.promise().parent = &waiter; }
    // Tells `watcher` at once.
    void when_done(TaskWatcher& watcher) { handle_.promise().watcher = &watcher; }

    auto operator co_await() && { return Awaiter(std::move(*this)); }

  private:
    struct Awaiter {
        explicit Awaiter(Task&& child) : task(std::move(child)) {}
        bool await_ready() {
            if (!task.started()) task.start();
            return task.done();
        }
        void await_suspend(std::coroutine_handle<> parent) {
            waiting.handle = parent;
            task.when_done(waiting);
        }
        T await_resume() { return task.take(); }
        Task task;
        Resumable waiting;
    };
    explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    void drop() {
        if (handle_) {
            GANTRY_ASSERT(!started_ || handle_.done());
            std::exchange(handle_, {}).destroy();
        }
    }
    std::coroutine_handle<promise_type> handle_;
    std::optional<T> ready_;
    bool started_ = false;
};

// Something that will be completed once, by a device, a transport or a message, and that one task
// waits for, or a function (`then`).
class Completion : private Resumable {
  public:
    explicit Completion(Executor& executor) : executor_(&executor) {}
    Completion(const Completion&) = delete;
    Completion& operator=(const Completion&) = delete;

    // Called by run_ready() when this is complete; set before anything can complete it.
    void then(void (*call)(Resumable&)) { function = call; }
    // Calls it then, as if it were a task that yields: before anything can complete this.
    void yield_to(void (*call)(Resumable&)) {
        function = call;
        executor_->make_ready_later(*this);
    }
    static Completion& of(Resumable& waiting) { return static_cast<Completion&>(waiting); }

    void complete(Status status) {
        GANTRY_ASSERT(!done_);
        status_ = std::move(status);
        done_ = true;
        if (waits()) executor_->make_ready(*this);
    }
    bool done() const { return done_; }
    const Status& status() const { return status_; }

    bool await_ready() const { return done_; }
    void await_suspend(std::coroutine_handle<> waiter) { handle = waiter; }
    Status await_resume() { return std::move(status_); }

  private:
    Executor* executor_;
    Status status_;
    bool done_ = false;
};

}  // namespace gantry

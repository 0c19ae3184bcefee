// SPDX-License-Identifier: BSD-3-Clause
//
// Scope: runs many tasks at once and always joins them, also when one fails. The
// chunks of a message and the blocks of an alltoall are children of a Scope. `join()` ends when
// every child has ended and gives the first failure; a failure also makes `cancelled()` true, which
// children read before they start their next operation.
#pragma once

#include "base/intrusive_list.hpp"
#include "base/task.hpp"

#include <new>

namespace gantry {

class Scope {
  public:
    explicit Scope(Executor& executor) : executor_(executor) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
        GANTRY_ASSERT(running_ == 0);
        reap();
    }

    // Starts the task at once. Finished children give their memory back at the next spawn or at the
    // join.
    void spawn(Task<Status> task) {
        reap();
        task.start();
        if (task.done()) {
            note(task.take());
            return;
        }
        void* memory = executor_.allocate_frame(sizeof(Child));
        // A running task that cannot be watched could never be joined.
        GANTRY_ASSERT(memory != nullptr);
        auto* child = new (memory) Child(*this, std::move(task));
        ++running_;
        running_children_.push_back(*child);
    }

    // An operation that is no task: join() waits for its end as well.
    void begin() { ++running_; }
    void end() {
        if (--running_ == 0 && joiner_ != nullptr) joiner_->complete(success());
    }

    bool cancelled() const { return !first_failure_.ok(); }
    void cancel(Status reason) { note(std::move(reason)); }
    int running() const { return running_; }

    Task<Status> join(Executor& executor) {
        while (running_ > 0) {
            Completion ended(executor);
            joiner_ = &ended;
            Status none = co_await ended;
            joiner_ = nullptr;
        }
        co_return first_failure_;
    }

  private:
    struct Child final : Link<Child>, TaskWatcher {
        Child(Scope& in, Task<Status> running) : scope(in), task(std::move(running)) {
            task.when_done(*this);
        }
        void task_ended() override { scope.ended(*this); }
        Scope& scope;
        Task<Status> task;
    };
    // Only moved here: its frame ends right now. Whoever spawns or joins next frees it.
    void ended(Child& child) {
        note(child.task.take());
        child.unlink();
        finished_children_.push_back(child);
        end();
    }
    void note(Status status) {
        if (!status.ok() && first_failure_.ok()) first_failure_ = std::move(status);
    }
    void reap() {
        while (Child* child = finished_children_.pop_front()) {
            child->~Child();
            executor_.free_frame(child);
        }
    }
    Executor& executor_;
    IntrusiveList<Child> running_children_;
    IntrusiveList<Child> finished_children_;
    Status first_failure_;
    Completion* joiner_ = nullptr;
    int running_ = 0;
};

}  // namespace gantry

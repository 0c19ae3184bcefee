// SPDX-License-Identifier: BSD-3-Clause
//
// Mailbox: things that arrive one by one and that one task takes in order. Closing it with a
// failure ends the taker's wait:
//
//   Result<Chunk> chunk = co_await mailbox.next();
#pragma once

#include "base/executor.hpp"
#include "base/status.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace gantry {

template <class T>
class Mailbox {
  public:
    explicit Mailbox(Executor& executor) : executor_(&executor) {}
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    void push(T item) {
        items_.push_back(std::move(item));
        wake();
    }
    void close(Status failure) {
        failure_ = std::move(failure);
        wake();
    }
    bool empty() const { return first_ == items_.size(); }
    std::size_t size() const { return items_.size() - first_; }
    T pop() {
        T item = std::move(items_[first_++]);
        if (empty()) {
            items_.clear();
            first_ = 0;
        } else if (first_ == kTakenAtMost) {
            items_.erase(items_.begin(), items_.begin() + kTakenAtMost);
            first_ = 0;
        }
        return item;
    }

    struct Next {
        Mailbox& mailbox;
        Resumable waiting{};
        bool await_ready() const { return !mailbox.empty() || !mailbox.failure_.ok(); }
        void await_suspend(std::coroutine_handle<> taker) {
            waiting.handle = taker;
            mailbox.waiter_ = &waiting;
        }
        Result<T> await_resume() {
            if (mailbox.empty()) return mailbox.failure_;
            return mailbox.pop();
        }
    };
    Next next() { return Next{*this}; }

  private:
    void wake() {
        if (waiter_ != nullptr) executor_->make_ready(*std::exchange(waiter_, nullptr));
    }
    Executor* executor_;
    // A deque would allocate before the first item comes, and most mailboxes of a message stay
    // empty.
    static constexpr std::ptrdiff_t kTakenAtMost = 64;
    std::vector<T> items_;
    std::size_t first_ = 0;
    Status failure_;
    Resumable* waiter_ = nullptr;
};

}  // namespace gantry

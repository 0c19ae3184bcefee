// SPDX-License-Identifier: BSD-3-Clause
//
// `co_await Yield(executor)`: lets progress() look at devices and transports before this coroutine
// goes on. A loop of long copies yields so that messages in the other direction keep moving.
#pragma once

#include "base/executor.hpp"

namespace gantry {

class Yield {
  public:
    explicit Yield(Executor& executor) : executor_(executor) {}
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> self) {
        waiting_.handle = self;
        executor_.make_ready_later(waiting_);
    }
    void await_resume() const {}

  private:
    Executor& executor_;
    Resumable waiting_;
};

}  // namespace gantry

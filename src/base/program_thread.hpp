// SPDX-License-Identifier: BSD-3-Clause
//
// `co_await ProgramThread(executor)`: goes on at once when one of the program's threads drives the
// engine, else when one does so next. Stands before every call of a function of the program: such a
// function may need what only the program's own threads have (a Python interpreter's lock).
#pragma once

#include "base/executor.hpp"

namespace gantry {

class ProgramThread {
  public:
    explicit ProgramThread(Executor& executor) : executor_(executor) {}
    bool await_ready() const { return !executor_.in_background(); }
    void await_suspend(std::coroutine_handle<> self) {
        waiting_.handle = self;
        executor_.leave_to_program(waiting_);
    }
    void await_resume() const {}

  private:
    Executor& executor_;
    Resumable waiting_;
};

}  // namespace gantry

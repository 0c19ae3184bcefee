// SPDX-License-Identifier: BSD-3-Clause
//
// ProgramCall: a function of the program that a coroutine wants called, such as a reduction
// function. Such a function may need what only the program's own threads have (a Python
// interpreter's lock), and another thread may hold that and stand waiting for the lock. So the coroutine
// waits where functions of the program have to wait (Executor::program_calls_wait), and one of the
// program's threads calls the function from outside of the engine (mpi/engine/program_calls.hpp).
#pragma once

#include "base/executor.hpp"

#include <coroutine>

namespace gantry {

class ProgramCall {
  public:
    using Function = void (*)(const void* what);
    ProgramCall(Executor& executor, Function function, const void* what) : executor_(executor) {
        work_.function_of_program = function;
        work_.what = what;
    }
    bool await_ready() {
        if (executor_.program_calls_wait()) return false;
        work_.call();
        return true;
    }
    void await_suspend(std::coroutine_handle<> self) {
        work_.handle = self;
        executor_.leave_to_program(work_);
    }
    void await_resume() const {}

  private:
    Executor& executor_;
    ProgramWork work_;
};

}  // namespace gantry

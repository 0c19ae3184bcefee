// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/program_calls.hpp"

#include "mpi/engine/boundary.hpp"

namespace gantry::mpi {
namespace {

thread_local bool making = false;

}  // namespace

bool in_program_call() {
    return making;
}

void make_program_calls(Executor& executor) {
    making = true;
    while (executor.has_program_work()) {
        ProgramWork& work = executor.take_program_work();
        {
            const LetOthersIn program;
            work.call();
        }
        executor.make_ready(work);
    }
    making = false;
}

}  // namespace gantry::mpi

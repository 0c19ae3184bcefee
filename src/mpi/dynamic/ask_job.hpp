// SPDX-License-Identifier: BSD-3-Clause
//
// A question to the launcher while the engine runs: its progress() does not look at the job, since
// nothing comes from there in a job that asks nothing.
#pragma once

#include "base/task.hpp"

namespace gantry::mpi {

class Engine;

Task<Status> ask_job(Executor& executor, Engine& engine, Task<Status> question);

}  // namespace gantry::mpi

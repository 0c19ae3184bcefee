// SPDX-License-Identifier: BSD-3-Clause
//
// A program that no launcher started and that spawns: it starts an mpiexec, the one beside the library,
// and becomes its guest. That is a job of one rank with PMI-1 like any other.
#pragma once

#include "job/job.hpp"

#include <memory>

namespace gantry::job {

// The error is MPI_ERR_SPAWN.
Result<std::unique_ptr<Job>> become_guest();

}  // namespace gantry::job

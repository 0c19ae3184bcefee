// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that were built for another MPI run on Gantry's personality of it: a library with that
// MPI's name, in a folder of its own below PREFIX/lib/gantry. mpiexec asks the system's loader which
// MPI a program would load and sees to it that it is ours.
#pragma once

#include "options.hpp"

#include <string>

namespace gantry::mpiexec {

// Sets the variables of every program of the job. `mistake`: why the job cannot run; `notes`: what
// was done, a line each.
struct Switched {
    std::string mistake;
    std::string notes;
};
Switched use_personalities(Options& options);

}  // namespace gantry::mpiexec

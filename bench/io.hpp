// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace gantry::bench {

// Files written and read by any number of ranks, all of MPI included; returns the program's status.
int io(int argc, char** argv);

}  // namespace gantry::bench

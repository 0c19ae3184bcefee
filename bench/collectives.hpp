// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace gantry::bench {

// Whether the first word of a command line names a collective operation.
bool is_collective(const char* word);
// Measures one operation, all of MPI included; returns the program's status.
int collectives(int argc, char** argv);

}  // namespace gantry::bench

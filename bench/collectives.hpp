// SPDX-License-Identifier: BSD-3-Clause
//
// Collective operations, of any number of ranks, with options of their own (collectives.cpp).
#pragma once

namespace gantry::bench {

bool is_collective(const char* word);
// The whole program, from MPI_Init on.
int collectives(int argc, char** argv);

}  // namespace gantry::bench

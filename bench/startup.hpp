// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace gantry::bench {

// The whole program: it begins with the clock, before MPI_Init.
int startup(int argc, char** argv);

}  // namespace gantry::bench

// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the hosts that were asked for are this machine alone: then no other launcher is needed.
#pragma once

#include "options.hpp"

namespace gantry::mpiexec {

// Clears hosts that name this machine only, unless a launcher was asked for by name. Where the number
// of ranks is not said, as many as the hosts have slots.
void take_this_machine(Options& options);

// What options that were taken do not do here, as one line; empty: nothing to say.
std::string what_is_ignored(const Options& options);

}  // namespace gantry::mpiexec

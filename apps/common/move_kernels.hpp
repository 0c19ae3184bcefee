// SPDX-License-Identifier: BSD-3-Clause
//
// The copying kernels for the host: row by row, which element by element would only slow down.
#pragma once

#include "kernel.hpp"
#include "move.hpp"

namespace gantry::apps {

extern const Kernel kMove8, kMove4;

}  // namespace gantry::apps

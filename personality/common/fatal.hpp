// SPDX-License-Identifier: BSD-3-Clause
//
// Where a personality cannot go on: like the system's loader when a library is missing, it says so
// in one line and ends the process.
#pragma once

namespace gantry::personality {

[[noreturn]] void fatal(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gantry::personality

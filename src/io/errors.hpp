// SPDX-License-Identifier: BSD-3-Clause
//
// What the system says about a file, as an MPI error class and a sentence.
#pragma once

#include "base/status.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::io {

// The class of an errno (MPI 5.0 section 14.7).
int class_of_errno(int error);
// "No space left on device (ENOSPC)".
std::string words_of_errno(int error);
// "writing 4096 bytes at byte 0 of file \"x\": No space left on device (ENOSPC)", with what helps
// where something does. `returned` is -errno.
Status refused(std::string_view what, std::int64_t returned);

}  // namespace gantry::io

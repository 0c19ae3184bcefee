// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// From so many bytes on a read is made in pieces, and others have their turn between them.
inline constexpr Bytes kReadPiece = 256 * kKiB;

Candidate cma_candidate(const Ask& ask);

}  // namespace gantry::plan

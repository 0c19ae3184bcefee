// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// The data travels with the envelope, or right behind it.
Candidate eager_candidate(const Ask& ask);

}  // namespace gantry::plan

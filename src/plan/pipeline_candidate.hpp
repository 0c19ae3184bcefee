// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// In pieces through slots, at one end or both.
Candidate pipeline_candidate(const Ask& ask);

}  // namespace gantry::plan

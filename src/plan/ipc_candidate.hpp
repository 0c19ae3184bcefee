// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

Candidate ipc_candidate(const Ask& ask);

// After how many staged messages of the same allocation a copy by `executor` repays the mapping that
// it has to open, where staging costs so much. Advice::kNever: it does not, or is open.
int pays_at(const Ask& ask, Executor executor, Nanoseconds staged);

}  // namespace gantry::plan

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

Candidate ipc_candidate(const Ask& ask);

}  // namespace gantry::plan

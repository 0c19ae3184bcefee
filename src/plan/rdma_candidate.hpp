// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// One put between the two buffers.
Candidate rdma_candidate(const Ask& ask);

}  // namespace gantry::plan

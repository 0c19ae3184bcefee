// SPDX-License-Identifier: BSD-3-Clause
//
// What rank 0 expects the messages of collectives to cost, which all ranks of the job then plan with.
#pragma once

#include "plan/coll_question.hpp"

namespace gantry::mpi {

struct Parts;

// The transports have been published, and need not be open.
plan::CollFacts job_costs(const Parts& parts);

}  // namespace gantry::mpi

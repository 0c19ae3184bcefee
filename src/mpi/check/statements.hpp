// SPDX-License-Identifier: BSD-3-Clause
//
// What all ranks say of one collective operation, once every rank knows it. Every rank comes to the
// same answer.
#pragma once

#include "mpi/check/agreement.hpp"
#include "mpi/check/groups.hpp"

#include <vector>

namespace gantry::mpi {

// Functions, operations and roots. Between two groups a rank that names MPI_PROC_NULL has no
// operation, and the group of the root names MPI_ROOT once.
Status compare_calls(const std::vector<Said>& all, const Groups& groups);
// What is sent and received, where all have the same. Between two groups that is so of what goes one
// way; what goes the other way may be something else.
Status compare_data(const std::vector<Said>& all, const Groups& groups);

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// The info key `soft` of MPI_Comm_spawn: which numbers of processes will do, as a list of triplets
// "a:b:c", "a:b" and "a" (MPI 5.0 section 11.8.4).
#pragma once

#include "base/status.hpp"

#include <string_view>

namespace gantry::mpi {

// The largest of them that is no larger than `most`.
Result<int> largest_of_soft(std::string_view list, int most);

}  // namespace gantry::mpi

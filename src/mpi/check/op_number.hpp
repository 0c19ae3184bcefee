// SPDX-License-Identifier: BSD-3-Clause
//
// Reduction operations by numbers that mean the same on all ranks.
#pragma once

#include <cstdint>
#include <string>

namespace gantry::mpi {

struct Op;

// Of those of the program only whether they commute can be told.
std::int32_t number_of(const Op& op);
std::string name_of_op(std::int32_t number);

}  // namespace gantry::mpi

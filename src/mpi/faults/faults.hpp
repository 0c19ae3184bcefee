// SPDX-License-Identifier: BSD-3-Clause
//
// What goes on when ranks die, for communicators: who is lost, and what a revocation ends.
#pragma once

#include "mpi/comm/comm.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace gantry::mpi {

// Members of a communicator that this rank knows to be lost, by peer; of the first so many losses.
std::vector<int> lost_members(const Comm& comm,
                              std::size_t among = std::numeric_limits<std::size_t>::max());

// The communicator of that context is revoked: the members of its communicator, none if there is none yet.
std::vector<int> end_revoked(std::uint32_t context);
// It is made now, and may have been revoked before.
void end_if_revoked(Comm& made);

// For calls that send nothing, which would end well: a failure where the communicator is revoked.
Status unless_revoked(const Comm& comm);

}  // namespace gantry::mpi

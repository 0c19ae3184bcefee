// SPDX-License-Identifier: BSD-3-Clause
//
// What goes on when ranks die, for communicators, windows and files: who is lost, and what a revocation ends.
#pragma once

#include "faults/agreement.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/io/file.hpp"
#include "mpi/rma/win.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace gantry::mpi {

// Members of a communicator that this rank knows to be lost, by peer; of the first so many losses.
std::vector<int> lost_members(const Comm& comm,
                              std::size_t among = std::numeric_limits<std::size_t>::max());

// The communicator, window or file of that context is revoked: its members, none if there is none yet.
std::vector<int> end_revoked(std::uint32_t context);
// It is made now, and may have been revoked before.
void end_if_revoked(Comm& made);
void end_if_revoked(Win& made);
void end_if_revoked(File& made);

// All members' next agreement, made in the order of their calls.
faults::Agreements::Call next_agreement(Comm& comm);
// For calls that make something together: success where all have come to success and live, else a failure on
// all that live.
Task<Status> all_or_none(Executor& executor, Comm* comm, faults::Agreements::Call call,
                         Status mine);

// For calls that send nothing, which would end well: a failure where that is revoked.
Status unless_revoked(const Comm& comm);
Status unless_revoked(const File& file);

}  // namespace gantry::mpi

// SPDX-License-Identifier: BSD-3-Clause
//
// A communicator of some ranks of another one, which they make among themselves.
#pragma once

#include "mpi/check/agreement.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/pending.hpp"

#include <memory>
#include <vector>

namespace gantry::mpi {

// Who is in it, by world rank, in the order of the new ranks. Every member lists the same.
struct Members {
    std::vector<int> peers;
    int rank = MPI_UNDEFINED;  // mine; MPI_UNDEFINED: I am none
};

// Who is no member gets MPI_COMM_NULL at once. `tag` keeps this agreement apart from others on the
// old communicator's collective context; overlapping groups follow each other under one tag.
Pending make_among(Comm& old, Members members, int tag, std::shared_ptr<const Topology> topology,
                   MPI_Comm* newcomm);

// The same behind a comparison of what all ranks of the old communicator say, which all call it.
Pending make_agreed(Comm& old, const Agreement& said, Members members, const coll::Team& everybody,
                    std::shared_ptr<const Topology> topology, MPI_Comm* newcomm);

// The same as a part of a task, for a team of all members.
Task<Status> make_member(Executor& executor, Comm* old, coll::Team team, Members members,
                         std::shared_ptr<const Topology> topology, MPI_Comm* newcomm);

}  // namespace gantry::mpi

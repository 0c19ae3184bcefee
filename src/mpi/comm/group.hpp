// SPDX-License-Identifier: BSD-3-Clause
//
// Groups: ordered sets of processes, named by their world rank (MPI 5.0 section 7.3).
#pragma once

#include "mpi/engine/handles.hpp"
#include "mpi/engine/object.hpp"

#include <memory>
#include <vector>

namespace gantry::mpi {

struct SendBuffer;

struct Group : Object<MPI_Group> {
    std::vector<int> peers;    // group rank -> world rank
    int rank = MPI_UNDEFINED;  // mine
    // What is attached to the session that it comes from; null: it comes from none.
    std::shared_ptr<SendBuffer> session_buffer;
    int size() const { return static_cast<int>(peers.size()); }
};

// A new group for the program; an empty one is MPI_GROUP_EMPTY. MPI_GROUP_NULL when memory is
// exhausted.
MPI_Group make_group(std::vector<int> peers, std::shared_ptr<SendBuffer> session_buffer = {});

}  // namespace gantry::mpi

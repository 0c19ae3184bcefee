// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives of an inter-communicator: what one group has goes to the other. In those with a root,
// the root is in one group and everybody in the other takes part. `root` is MPI_ROOT on the root
// itself, MPI_PROC_NULL on the others of its group, who have nothing to do, and the root's rank in
// its group on those of the other group.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/reducer.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// Ends when everybody of the other group has entered.
Task<Status> inter_barrier(Executor& executor, Sides sides);
// The root's buffer to the other group.
Task<Status> inter_bcast(Executor& executor, Sides sides, p2p::Buffer buffer, int root);
// The other group's `mine` into the root's blocks.
Task<Status> inter_gather(Executor& executor, Sides sides, p2p::Buffer mine, Blocks all, int root);
// The root's blocks, one to each `mine` of the other group.
Task<Status> inter_scatter(Executor& executor, Sides sides, Blocks all, p2p::Buffer mine, int root);
// The other group's `mine` into everybody's blocks.
Task<Status> inter_allgather(Executor& executor, Sides sides, p2p::Buffer mine, Blocks all);
// Block j of rank i becomes block i of rank j of the other group.
Task<Status> inter_alltoall(Executor& executor, Sides sides, Blocks outgoing, Blocks incoming);
// The reduction of the other group's `source`, in rank order, into the root's `sink`.
Task<Status> inter_reduce(Executor& executor, Sides sides, p2p::Buffer source, p2p::Buffer sink,
                          Reducer reducer, int root);
// The same into everybody's `sink`.
Task<Status> inter_allreduce(Executor& executor, Sides sides, p2p::Buffer source, p2p::Buffer sink,
                             Reducer reducer);
// The same, a share for each rank. `shares` has counts and displacements of each rank's part, for
// the ranks of this group; the whole vector is as long in both groups.
Task<Status> inter_reduce_scatter(Executor& executor, Sides sides, p2p::Buffer source,
                                  Blocks shares, p2p::Buffer sink, Reducer reducer);

}  // namespace gantry::coll

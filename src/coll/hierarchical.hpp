// SPDX-License-Identifier: BSD-3-Clause
//
// Hierarchical operations of ranks on several nodes: a row of operations of the ranks of each node and
// of those that stand for the nodes (coll/nodes.hpp). Every part is planned for itself, so inside a node
// it goes over the node segment and mapped memory where it can; reductions of device memory are made there
// by kernels. A rank that failed in one part says so in the next ones (Team::before).
//
// `leaders`: the ranks of each node that work between nodes, each with its share of a vector; 1: a
// leader alone.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/exchange.hpp"
#include "coll/reducer.hpp"

namespace gantry::coll {

Task<Status> barrier_hierarchical(Executor& executor, Run& run);
Task<Status> bcast_hierarchical(Executor& executor, Run& run, p2p::Buffer buffer, int root);
// Of equal blocks, where ranks of a node follow each other; this rank's is in place already.
Task<Status> allgather_hierarchical(Executor& executor, Run& run, Blocks all);
Task<Status> allreduce_hierarchical(Executor& executor, Run& run, p2p::Buffer source,
                                    p2p::Buffer sink, Reducer reducer, int leaders);
Task<Status> reduce_hierarchical(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                                 Reducer reducer, int root, int leaders);

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner is asked about a collective operation. Every rank asks for itself, and all must
// come to one answer without a message, so a question and its facts hold only what all ranks know
// alike:
//
//   by MPI's rules     operation, signature bytes where they match on all ranks, root, whether it is
//                      in place, the reduction's properties, the order of calls
//   of the group       ranks, and how they lie on nodes
//   of the job         parameters and costs, which are rank 0's (mpi/engine/job_costs.hpp)
//   by the board       the memory that all ranks have brought, where a board of the node says so
//
// What one rank knows alone (its datatype, its memory's kind, its counts of a v form) is no part of
// it. `memory` stays `unknown` unless all ranks read it from one place.
#pragma once

#include "base/units.hpp"

#include <cstdint>

namespace gantry::plan {

enum class Collective : std::uint8_t {
    barrier,
    bcast,
    reduce,
    allreduce,
    reduce_scatter,  // also the block form
    allgather,
    allgatherv,
    alltoall,
    alltoallv,  // also the w form
    gather,
    gatherv,
    scatter,
    scatterv,
    scan,  // also the exclusive one
};
inline constexpr int kCollectives = 14;

// How a group's ranks lie on nodes.
struct CollShape {
    int ranks = 1;
    int nodes = 1;
    int most = 1;          // ranks of the fullest node
    int fewest = 1;        // and of the emptiest
    bool in_order = true;  // the ranks of each node follow each other
    bool operator==(const CollShape&) const = default;
};

enum class CollMemory : std::uint8_t { unknown, host, device };

// What a board of the node says of the memory that all ranks have brought; nothing without a board.
struct CollBoard {
    bool there = false;        // the ranks of this communicator share one
    bool own_gpus = false;     // every rank's memory lies on a GPU that no other rank uses
    bool reachable = false;    // every rank's GPU reaches every other's memory, mapped now
    bool mappable = false;     // the same, once memory not seen before is mapped
    bool time_sliced = false;  // some GPU is used by several ranks, in turns
    bool operator==(const CollBoard&) const = default;
};

struct CollQuestion {
    Collective operation = Collective::barrier;
    // barrier, alltoallv, gatherv, scatterv: 0. bcast, reduce, allreduce, scan: the vector.
    // reduce_scatter, allgatherv: what all shares are together. allgather, gather, scatter: one
    // rank's block. alltoall: what one rank has for one other.
    Bytes bytes = 0;
    std::uint64_t count = 0;  // elements of a reduction's vector
    CollShape shape = {};
    bool commutative = true;  // of a reduction
    bool predefined = true;   // of a reduction: not a function of the program
    bool in_place = false;    // where all ranks must say so alike (alltoall)
    CollMemory memory = CollMemory::unknown;
    CollBoard board = {};
    bool operator==(const CollQuestion&) const = default;
};

// One way between two ranks, as a step of an algorithm experiences it.
struct CollWay {
    Nanoseconds latency = 500;   // an empty message, one way, its handling on both sides included
    Nanoseconds handling = 250;  // what each further message costs the processor of one side
    double bytes_per_second = 8e9;
    Bytes eager_limit = 32 * kKiB;  // larger ones ask first: two more ways
    bool operator==(const CollWay&) const = default;
};

// What the operations of GPUs cost, for candidates that work in device memory; `launch` 0: no GPU is
// known.
struct CollGpu {
    Nanoseconds launch = 0;             // a kernel alone, from the call until its end is seen
    Nanoseconds resident = 0;           // work given to a kernel that stays; 0: none does
    Nanoseconds turn = 0;               // of the compute queue of a shared GPU
    Nanoseconds copy = 0;               // one copy to or from host memory alone
    double peer_bytes_per_second = 0;   // to another GPU of the node
    double local_bytes_per_second = 0;  // inside the GPU
    double host_bytes_per_second = 0;   // to or from host memory
    bool operator==(const CollGpu&) const = default;
};

// Plain data without pointers: rank 0's is the job's.
struct CollFacts {
    CollWay inside{.latency = 600, .handling = 250, .bytes_per_second = 6e9};
    CollWay between{.latency = 2500, .handling = 500, .bytes_per_second = 1e10};
    double reduce_bytes_per_second = 6e9;  // one processor combining two vectors
    double copy_bytes_per_second = 1e10;   // one processor copying
    int processors = 0;                    // of a node; 0: as many as it has ranks
    CollGpu gpu;
    bool operator==(const CollFacts&) const = default;
};

}  // namespace gantry::plan

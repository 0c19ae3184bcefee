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
//   by the node segment       the memory that the ranks have brought, once they have met on their node's
//
// What one rank knows alone (its datatype, its memory's kind, its counts of a v form) is no part of
// it. Ranks of a node may be told to meet on their node segment first (CollPlan::meet): all read there what
// memory each of them brings, and ask again with that.
#pragma once

#include "base/units.hpp"
#include "plan/rate_step.hpp"

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
    scan,      // also the exclusive one
    neighbor,  // all forms, on any topology
};
inline constexpr int kCollectives = 15;

// How a group's ranks lie on nodes.
struct CollShape {
    int ranks = 1;
    int nodes = 1;
    int most = 1;          // ranks of the fullest node
    int fewest = 1;        // and of the emptiest
    bool in_order = true;  // the ranks of each node follow each other
    bool operator==(const CollShape&) const = default;
};

// The memory that the ranks bring, as all of them read it on the node segment of their node.
enum class CollMemory : std::uint8_t {
    unknown,     // they have not met there
    own_device,  // nor these; a rank asks what is best for its blocks or vector in device memory
    cells,       // small: it lies on the node segment already
    host,        // in host memory, where the others may read it (process_vm_readv)
    device,      // every rank's blocks and vectors lie in device memory that the others may map
    other,       // anything else
};

// What the node segment adds to a question; nothing where the ranks share none.
struct CollNodeSegment {
    bool there = false;        // the ranks of this communicator share one, and may use it
    bool time_sliced = false;  // several ranks use one GPU, which works for one process at a time
    bool in_place = false;     // of a reduction: some rank's result replaces its vector
    bool on_devices = false;   // what lies in cells comes from device memory, and goes there
    bool mailbox = false;      // the communicator has a mailbox, and the call blocks
    bool strided = false;      // of neighbors: blocks are unpacked where they belong
    bool no_reads = false;     // some rank may not read the host memory of another one
    HostRates rates = {};      // of host memory, as the slowest rank has measured them
    bool operator==(const CollNodeSegment&) const = default;
};

// What the call itself says, alike on all ranks by MPI's rules: all that they ask before they have met.
struct CallQuestion {
    Collective operation = Collective::barrier;
    // barrier, alltoallv, gatherv, scatterv: 0. bcast, reduce, allreduce, scan: the vector.
    // reduce_scatter, allgatherv: what all shares are together. allgather, gather, scatter: one
    // rank's block. alltoall: what one rank has for one other. neighbor: nothing, until a rank asks for
    // its own blocks, which are its own matter: what it offers to its neighbors on the node segment follows.
    Bytes bytes = 0;
    std::uint64_t count = 0;  // elements of a reduction's vector; of neighbor, blocks
    bool commutative = true;  // of a reduction
    bool predefined = true;   // of a reduction: not a function of the program
    bool in_place = false;    // where all ranks must say so alike (alltoall)
};

struct CollQuestion {
    Collective operation = Collective::barrier;
    Bytes bytes = 0;  // these two and the next three as in CallQuestion
    std::uint64_t count = 0;
    CollShape shape = {};
    bool commutative = true;
    bool predefined = true;
    bool in_place = false;
    CollMemory memory = CollMemory::unknown;
    CollNodeSegment node_segment = {};
    bool operator==(const CollQuestion&) const = default;
};

inline CollQuestion question_of(const CallQuestion& call) {
    return {.operation = call.operation,
            .bytes = call.bytes,
            .count = call.count,
            .commutative = call.commutative,
            .predefined = call.predefined,
            .in_place = call.in_place};
}

// One way between two ranks, as a step of an algorithm experiences it.
struct CollWay {
    Nanoseconds latency = 500;   // an empty message, one way, its handling on both sides included
    Nanoseconds handling = 250;  // what each further message costs the processor of one side
    double bytes_per_second = 8e9;
    Bytes eager_limit = 32 * kKiB;  // larger ones ask first: two more ways
    bool operator==(const CollWay&) const = default;
};

// What the operations of GPUs cost, for candidates that work in device memory. Unless a machine is
// described it is taken for an H100: nobody asks a driver when the job starts.
struct CollGpu {
    Nanoseconds launch = 8900;  // a kernel alone, from the call until its end is seen
    Nanoseconds resident =
        4900;  // short copies or a short reduction that a persistent kernel makes
    Nanoseconds handshake =
        5500;                    // what offering mapped memory on the node segment adds to a launch
    Nanoseconds message = 8500;  // a short message between device memories of a node
    Nanoseconds copy = 8700;     // a copy inside the GPU alone
    Nanoseconds out = 6300;      // a copy to page-locked memory of the host, by a copy engine
    Nanoseconds further = 1440;  // the calls for one more copy while others run
    Nanoseconds to_cell =
        12'000;  // a short one as a collective makes it (four H100s, bench/results)
    Nanoseconds from_cell = 12'000;
    Nanoseconds turn = 140'000;               // of the compute queue of a shared GPU
    double peer_bytes_per_second = 3.9e11;    // to another GPU of the node
    double local_bytes_per_second = 1.49e12;  // inside the GPU
    double host_bytes_per_second = 5.5e10;    // to page-locked memory of the host
    Nanoseconds mapping = 1500;               // each buffer of a further peer that a rank looks up
    bool operator==(const CollGpu&) const = default;
};

// Handshake on the node segment.
struct CollNodeSegmentCost {
    Nanoseconds handshake = 300;  // taking a descriptor, posting and leaving it
    Nanoseconds row = 60;         // reading what another rank has posted
    Nanoseconds flag = 200;       // until another processor sees what was posted
    Nanoseconds cell = 20;        // filling or reading a cell of a mailbox
    bool operator==(const CollNodeSegmentCost&) const = default;
};

// Plain data without pointers: rank 0's is the job's.
struct CollFacts {
    CollWay inside{.latency = 600, .handling = 250, .bytes_per_second = 6e9};
    CollWay between{.latency = 2500, .handling = 500, .bytes_per_second = 1e10};
    double reduce_bytes_per_second = 6e9;  // one processor combining two vectors
    double copy_bytes_per_second = 1e10;   // one processor copying
    double read_bytes_per_second = 8e9;    // of another rank's memory, through the kernel
    Nanoseconds read_call = 500;           // such a read without its bytes
    int processors = 0;                    // of a node; 0: as many as it has ranks
    // Network cards of a node: each gives what `between` says of one rank, and all ranks share them.
    std::int16_t cards = 1;
    bool network_reaches_devices = false;  // which is then not staged in host memory
    // Where ranks share processors: until one that is waited for has its turn.
    Nanoseconds processor_turn = 15'000;
    CollNodeSegmentCost node_segment;
    CollGpu gpu;
    bool operator==(const CollFacts&) const = default;
};

}  // namespace gantry::plan

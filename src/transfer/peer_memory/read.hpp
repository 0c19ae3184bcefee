// SPDX-License-Identifier: BSD-3-Clause
//
// Host memory of another rank of the node, read where it lies (Transport::read_memory): its owner has said where,
// and does nothing. Others have their turn between pieces. Each piece is timed, and so known to whoever chooses a
// way (host_reads.hpp).
#pragma once

#include "base/task.hpp"
#include "plan/cma_candidate.hpp"
#include "transfer/context.hpp"

namespace gantry::transfer {

struct PeerMemory {
    Endpoint& owner;
    std::uint64_t address;
    Bytes bytes;
};

// MPI_ERR_UNSUPPORTED_OPERATION: that memory cannot be read from another process.
Task<Status> read(Executor& executor, Context& context, PeerMemory from, std::byte* to,
                  Bytes piece = plan::kReadPiece);
// Reads of a few bytes, which say what a call costs.
Task<Status> try_calls(Executor& executor, Context& context, PeerMemory from, std::byte* to);

}  // namespace gantry::transfer

// SPDX-License-Identifier: BSD-3-Clause
//
// Host memory of other ranks of the node, read where it lies (transfer/peer_memory/read.hpp), and what a rank
// says of that on the node segment.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"
#include "plan/coll_question.hpp"

#include <cstdint>

namespace gantry::coll {

// What a rank says of reading the memory of the others, on the node segment.
struct MayRead {
    bool all = false;  // the system lets it read the memory of all of them
    plan::HostRates rates;
};
MayRead may_read(const Team& team);

// The question with what one rank says; the slowest counts.
void ask_with(plan::CollNodeSegment& node_segment, const MayRead& says);

// MPI_ERR_UNSUPPORTED_OPERATION: that memory cannot be read from another process.
Task<Status> read_from(Executor& executor, Team team, int member, std::uint64_t address, void* to,
                       Bytes bytes);
// Into a buffer of any layout and memory kind.
Task<Status> read_into(Executor& executor, Team team, int member, std::uint64_t address,
                       p2p::Buffer sink, Bytes bytes);

}  // namespace gantry::coll

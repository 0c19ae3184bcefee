// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank offers to the others of a direct exchange (coll/node/exchange.hpp), on the node segment of
// the node: how its blocks can be had, and where blocks for it can be stored.
#pragma once

#include "coll/node/memory_offer.hpp"
#include "coll/team.hpp"
#include "plan/coll_question.hpp"
#include "transfer/context.hpp"

#include <cstdint>
#include <vector>

namespace gantry::coll {

// The blocks of one rank in an exchange: what it sends to each member and receives from each. An
// empty one is nothing.
struct Traffic {
    std::vector<p2p::Buffer> outgoing, incoming;
    // The root of an operation: nobody else has blocks to send, or gets any. -1: anybody may.
    int only_sender = -1, only_receiver = -1;

    explicit Traffic(int members)
        : outgoing(static_cast<std::size_t>(members)),
          incoming(static_cast<std::size_t>(members)) {}
};

struct BlockPlace {
    std::uint64_t at = 0, bytes = 0;
};

// Copies that fill a cell out of device memory.
struct CellCopies {
    std::vector<p2p::Buffer> from, to;
};

// The offer of this rank. It writes lists, and small blocks in host memory, into the cell. Small blocks in
// device memory go there, too, by `copies`, where the planner would have it so.
MemoryOffer make_offer(const Team& team, const Traffic& traffic, std::span<std::byte> cell,
                       const plan::CallQuestion& question, CellCopies& copies);

// Block of `owner` for or of `member`, as the offer and cell of the owner say.
BlockPlace sink_place(const MemoryOffer& offer, std::span<const std::byte> cell, int member);
BlockPlace source_place(const MemoryOffer& offer, std::span<const std::byte> cell, int size,
                        int member);

}  // namespace gantry::coll

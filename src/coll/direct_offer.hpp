// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank offers to the others of a direct exchange (coll/direct_exchange.hpp), on the board of
// the node: how its blocks can be had, and where blocks for it can be stored.
#pragma once

#include "coll/host_reader.hpp"
#include "coll/team.hpp"
#include "plan/coll_question.hpp"
#include "transfer/board.hpp"
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

// Where the blocks for each member lie: at equal distances, or as a list in the cell says.
struct BlockPlaces {
    std::uint64_t first = 0;    // address, or offset in the cell
    std::int64_t distance = 0;  // from one member's to the next one's
    std::uint64_t bytes = 0;    // of each
    std::uint32_t listed = 0;   // 1: the list in the cell counts
};

struct BlockPlace {
    std::uint64_t at = 0, bytes = 0;
};

inline constexpr int kStored = 0;  // the step of a rank whose stores have ended

struct DirectOffer {
    enum class Sends : std::uint8_t { nothing, in_cell, host, device, other };
    enum class Takes : std::uint8_t { nothing, device, other };

    Sends sends = Sends::nothing;
    Takes takes = Takes::nothing;
    bool has_own = false;      // a block of its own for itself, not in place
    bool own_in_cell = false;  // that block lies in the cell, too
    bool on_device = false;    // what lies in the cell comes from device memory
    bool time_sliced = false;  // its GPU works for one process at a time
    BlockPlaces sources, sinks;
    std::uint64_t bytes = 0;   // that it sends, to all together
    MayRead reads;             // of who sends long blocks of host memory, or takes any there
    device::IpcHandle sink;    // kind none: nothing is taken
    device::IpcHandle source;  // only where another rank may have to copy; its `gpu` always
};

// Copies that fill a cell out of device memory.
struct CellCopies {
    std::vector<p2p::Buffer> from, to;
};

// The offer of this rank. It writes lists, and small blocks in host memory, into the cell. Small blocks in
// device memory go there, too, by `copies`, where the planner would have it so.
DirectOffer make_offer(const Team& team, const Traffic& traffic, std::span<std::byte> cell,
                       const plan::CallQuestion& question, CellCopies& copies);

// Block of `owner` for or of `member`, as the offer and cell of the owner say.
BlockPlace sink_place(const DirectOffer& offer, std::span<const std::byte> cell, int member);
BlockPlace source_place(const DirectOffer& offer, std::span<const std::byte> cell, int size,
                        int member);

}  // namespace gantry::coll

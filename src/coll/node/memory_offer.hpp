// SPDX-License-Identifier: BSD-3-Clause
//
// MemoryOffer: what a rank brings to a call of its node (node_call.hpp), on the node segment: where its blocks or its
// vector lie, where those for it belong, and how the others get at them.
#pragma once

#include "coll/host_reader.hpp"
#include "device/device.hpp"
#include "transfer/node_segment.hpp"

#include <cstdint>

namespace gantry::coll {

// Where one side of a rank's call lies.
enum class Held : std::uint8_t {
    nothing,  // it is empty
    in_cell,  // on the node segment, in the rank's cell
    host,     // in host memory that the others may read
    device,   // in device memory that they may map
    other,    // elsewhere: it goes by messages
};

// Where the blocks for each member lie: at equal distances, or as a list in the cell says. A vector is at
// `first`.
struct BlockPlaces {
    std::uint64_t first = 0;    // address, or offset in the cell
    std::int64_t distance = 0;  // from one member's to the next one's
    std::uint64_t bytes = 0;    // of each
    std::uint32_t listed = 0;   // 1: the list in the cell counts
};

struct MemoryOffer {
    Held source = Held::nothing, sink = Held::nothing;
    bool on_device = false;  // the source comes from device memory, wherever it lies for the others
    bool time_sliced = false;  // its GPU works for one process at a time
    bool in_place = false;     // of a reduction: the result replaces the vector, which others read
    bool has_own = false;      // of an exchange: a block of its own for itself, not in place
    bool own_in_cell = false;  // that block lies in the cell, too
    std::uint32_t rooms = 0;   // of neighbors: as many lie in the cell
    BlockPlaces sources, sinks;
    std::uint64_t bytes = 0;     // of the source, for all together
    std::uint64_t share_at = 0;  // of a reduction in shares: where this rank's will lie
    // The `gpu` of a source in device memory always. Of neighbors, who store: `sink_handle` is of where blocks
    // belong, `source_handle` of scratch memory that they come through.
    device::IpcHandle source_handle, sink_handle;
    MayRead reads;
};

inline constexpr int kStored = 0;  // the phase of a rank whose stores have ended

// The offers of those who have posted in a handshake, by member.
class Offers {
  public:
    explicit Offers(const transfer::Handshake& handshake) : handshake_(handshake) {}
    int size() const { return handshake_.size(); }
    const MemoryOffer& operator[](int member) const {
        return handshake_.offer<MemoryOffer>(member);
    }

  private:
    const transfer::Handshake& handshake_;
};

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// How much algorithms of collectives hold on the way between GPUs of several nodes. Both ends of a message
// may differ here: it is one message whatever each of them stages.
#pragma once

#include "base/units.hpp"

namespace gantry::plan {

// Of an all-to-all that stages (coll/alltoall_staged.cpp).
struct StagedLimits {
    Bytes largest_block =
        256 * kKiB;  // larger ones are messages of device memory, which are staged in pieces
    Bytes pinned = 2 * kMiB;  // page-locked memory of a direction
    // Others under way: long messages that all start at once crowd one receiver after the other.
    Bytes apart = kMiB;
};
inline constexpr StagedLimits kStagedLimits;

// Of what a rank passes on from host memory while it is copied into its GPU (coll/relay.hpp).
struct RelayLimits {
    Bytes longest_block = kMiB;  // longer ones are messages of device memory
    int ring_slots = 3;          // one comes, one goes, one is copied
    // Of a chain: segments that are awaited, and that are sent; one more is copied.
    int chain_ahead = 2, chain_sends = 2;
    constexpr int chain_slots() const { return chain_ahead + chain_sends + 1; }
};
inline constexpr RelayLimits kRelayLimits;

// Of a vector of device memory that goes between nodes in short pieces (coll/staged_vector.hpp).
struct StagedVectorLimits {
    Bytes longest = kMiB;  // longer ones go in pieces that are worth a copy each
    Bytes first_stage = 16 * kKiB, stage = 64 * kKiB;
};
inline constexpr StagedVectorLimits kStagedVectorLimits;

// Ranks of several nodes tell each other what memory they bring (coll/known_memory.hpp): behind which call
// first, how many times as many calls later again, and from how many bytes on vectors are long ones, of which
// another memory may be known.
struct KnownMemoryLimits {
    std::uint32_t first_call = 3, further = 3;
    Bytes long_from = 64 * kKiB;
};
inline constexpr KnownMemoryLimits kKnownMemoryLimits;

}  // namespace gantry::plan

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

}  // namespace gantry::plan

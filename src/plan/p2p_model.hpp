// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner believes a message costs: plain arithmetic on Facts. A way from source to sink
// is a row of legs (copy into a slot, wire, copy out of a slot); the pieces of a message follow
// each other through the legs, so the slowest leg sets the pace:
//
//     expected = handshake + first piece through every leg
//                + (pieces - 1) x the slowest leg's time for one more piece
//
// Where one engine makes all copies it is all legs' time. A leg has a price per piece beside its
// rate: on modern machines that price, not the rate, decides the size of a piece (3.3 to 4.9 us
// on an H100, docs/design/staged-pipeline.md).
#pragma once

#include "plan/plan.hpp"

#include <array>
#include <span>

namespace gantry::plan {

// A copy or a wire, as every piece experiences it.
struct Leg {
    Nanoseconds latency = 0;    // the first piece's fixed time
    Nanoseconds per_piece = 0;  // the fixed time of one more piece right behind another
    double bytes_per_second = 0;

    Nanoseconds first(Bytes bytes) const;
    Nanoseconds further(Bytes bytes) const;
};

Nanoseconds transfer_time(Bytes bytes, double bytes_per_second);

// The legs of one pipeline and what bounds its pieces.
struct Line {
    std::array<Leg, 3> legs{};
    int leg_count = 0;
    bool take_turns = false;    // the legs have one engine between them
    Nanoseconds handshake = 0;  // until the verdict is known
    bool ahead = false;         // the first leg starts before the verdict
    Nanoseconds tail = 0;       // from the last piece's arrival until it is known
    Bytes in_flight = 0;        // slots that one message may hold, in bytes
    Bytes smallest_chunk = 0, largest_chunk = 0;
    Bytes equal_unit = 0;   // also pieces of one size, a multiple of this; 0: powers of two only
    Bytes fixed_chunk = 0;  // 0: choose
    int fixed_depth = 0;    // 0: choose
    int shallowest = 3;     // one piece in each leg

    void add(const Leg& leg) { legs[static_cast<std::size_t>(leg_count++)] = leg; }
};

struct Pieces {
    Bytes chunk = 0;
    int depth = 1;
    Nanoseconds expected = 0;
    int slowest_leg = 0;
};

// What slots for device messages are made of.
inline constexpr Bytes kDeviceSlotUnit = 64 * kKiB;
// While they are cold a message of a buffer that is used once opens it instead, at 10 to 30 us more (two H200s, new
// small allocations); page-locking all slots takes 8 to 10 ms (docs/design/mappings.md).
inline constexpr int kMostWithoutSlots = 512;

// How the end of a copy is seen that somebody waits for before anything else: a word is seen sooner; behind a long
// copy that no longer counts, and an event holds up the next copy less.
inline constexpr Completion completion_of_awaited(Bytes bytes) {
    return bytes <= 64 * kKiB ? Completion::flag : Completion::event;
}
inline constexpr int kDeepest = 64;  // pieces in flight that a CTS can name

// The best chunk (a power of two, an equal part, or the fixed one) and depth for `bytes` on this
// line.
Pieces best_pieces(const Line& line, Bytes bytes);

}  // namespace gantry::plan

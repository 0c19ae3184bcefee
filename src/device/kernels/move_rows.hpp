// SPDX-License-Identifier: BSD-3-Clause
//
// The parameter of the kernel `gantry_move_rows`: sets of rows, or planes of rows, between strided and
// packed memory, either way. Every word has 8 bytes, so that the simulated driver can recognise addresses among
// them. The driver copies all parameters at each launch: more sets than a few come in a table.
#pragma once

namespace gantry::kernels {

using Word = unsigned long long;

inline constexpr unsigned kSetsInParameters = 8;
inline constexpr unsigned kRowThreads = 256;
// Threads of a warp work on one part of one set together.
inline constexpr unsigned kWarp = 32;

struct RowSet {
    Word destination, source;  // of the first row, from the ends below; wraps where it goes down
    Word width, count;         // all sets of a launch together: less than 4 GiB
    Word destination_pitch, source_pitch;
};

// A set's planes; its first row is that of the first one.
struct Planes {
    Word count;
    Word destination_pitch, source_pitch;
};

struct MoveRows {
    Word destination, source;
    Word sets;
    Word parts;  // of each set; warps take parts in turn
    Word table;  // address of all sets in page-locked memory; 0: they are here
    Word boxes;  // not 0: each set has the planes that are here
    RowSet set[kSetsInParameters];
    Planes planes[kSetsInParameters];
};

}  // namespace gantry::kernels

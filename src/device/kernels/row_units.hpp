// SPDX-License-Identifier: BSD-3-Clause
//
// Sets of rows, or of planes of rows, moved by warps: each warp takes a part of a set.
//
//   unit         the widest of 16, 8, 4, 2, 1 bytes that all rows of the set and both ends allow
//   one thread   one unit, then the one a warp's width further; four loads in flight
#pragma once

#include "copy_units.hpp"
#include "move_rows.hpp"

namespace gantry::kernels {

// Where a row lies from the first one. Rows of one plane:
struct Flat {
    Word to_pitch, from_pitch;
    GANTRY_DEVICE Word count() const { return 1; }
    GANTRY_DEVICE Word odd() const { return 0; }
    GANTRY_DEVICE Word to(unsigned row) const { return row * to_pitch; }
    GANTRY_DEVICE Word from(unsigned row) const { return row * from_pitch; }
};

// Of several:
struct Box {
    Word to_pitch, from_pitch;
    unsigned rows;  // of a plane
    Planes planes;
    GANTRY_DEVICE Word count() const { return planes.count; }
    GANTRY_DEVICE Word odd() const { return planes.destination_pitch | planes.source_pitch; }
    GANTRY_DEVICE Word to(unsigned row) const {
        const unsigned plane = row / rows;
        return plane * planes.destination_pitch + (row - plane * rows) * to_pitch;
    }
    GANTRY_DEVICE Word from(unsigned row) const {
        const unsigned plane = row / rows;
        return plane * planes.source_pitch + (row - plane * rows) * from_pitch;
    }
};

// Units [begin, end) of a set, by one warp.
template <class Unit, class Shape>
GANTRY_DEVICE inline void move_units(const RowSet& set, const Shape& shape, Word destination,
                                     Word source, unsigned begin, unsigned end, unsigned lane) {
    const unsigned across = static_cast<unsigned>(set.width / sizeof(Unit));
    const auto to = [=](unsigned unit) {
        const unsigned row = unit / across;
        return reinterpret_cast<Unit*>(destination + shape.to(row) +
                                       (unit - row * across) * sizeof(Unit));
    };
    const auto from = [=](unsigned unit) {
        const unsigned row = unit / across;
        return reinterpret_cast<const Unit*>(source + shape.from(row) +
                                             (unit - row * across) * sizeof(Unit));
    };
    unsigned at = begin + lane;
    // Host memory answers after a microsecond.
    for (; at + 3 * kWarp < end; at += 4 * kWarp) {
        const Unit a = *from(at), b = *from(at + kWarp), c = *from(at + 2 * kWarp),
                   d = *from(at + 3 * kWarp);
        *to(at) = a;
        *to(at + kWarp) = b;
        *to(at + 2 * kWarp) = c;
        *to(at + 3 * kWarp) = d;
    }
    for (; at < end; at += kWarp)
        *to(at) = *from(at);
}

template <class Unit, class Shape>
GANTRY_DEVICE inline void move_part(const RowSet& set, const Shape& shape, Word destination,
                                    Word source, Word part, Word parts, unsigned lane) {
    const Word units = set.width / sizeof(Unit) * set.count * shape.count();
    const Word share = ((units + parts - 1) / parts + kWarp - 1) & ~Word{kWarp - 1};
    const Word begin = part * share < units ? part * share : units;
    const Word end = units - begin < share ? units : begin + share;
    move_units<Unit>(set, shape, destination, source, static_cast<unsigned>(begin),
                     static_cast<unsigned>(end), lane);
}

// Part `part` of `parts` of a set whose first row lies at these addresses, by one warp.
template <class Shape>
GANTRY_DEVICE inline void move_set(const RowSet& set, const Shape& shape, Word to, Word from,
                                   Word part, Word parts, unsigned lane) {
    Word odd = to | from | set.width | shape.odd();
    if (set.count > 1) odd |= set.destination_pitch | set.source_pitch;
    if ((odd & 15) == 0)
        move_part<Quad>(set, shape, to, from, part, parts, lane);
    else if ((odd & 7) == 0)
        move_part<Word>(set, shape, to, from, part, parts, lane);
    else if ((odd & 3) == 0)
        move_part<unsigned>(set, shape, to, from, part, parts, lane);
    else if ((odd & 1) == 0)
        move_part<unsigned short>(set, shape, to, from, part, parts, lane);
    else
        move_part<unsigned char>(set, shape, to, from, part, parts, lane);
}

}  // namespace gantry::kernels

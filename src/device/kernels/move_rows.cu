// SPDX-License-Identifier: BSD-3-Clause
//
// gantry_move_rows: packs or unpacks sets of rows in one launch. One end is this GPU's memory, the
// other may be page-locked memory of the host: what is packed goes over the link once, in order.
//
//   unit         the widest of 16, 8, 4, 2, 1 bytes that all rows of the set and both ends allow
//   one thread   one unit, then the one a warp's width further; four loads in flight
//   one warp     part p of set s, item = s x parts + p; stride = the warps of the grid
//
// No flag: the stream says when it has ended.
#include "dialect.hpp"
#include "move_rows.hpp"

namespace gantry::kernels {
namespace {

using Quad = unsigned __attribute__((ext_vector_type(4)));

// Units [begin, end) of a set, by one warp.
template <class Unit>
GANTRY_DEVICE inline void move_units(const RowSet& set, Word destination, Word source,
                                     unsigned begin, unsigned end, unsigned lane) {
    const unsigned across = static_cast<unsigned>(set.width / sizeof(Unit));
    const Word to_pitch = set.destination_pitch, from_pitch = set.source_pitch;
    const auto to = [=](unsigned unit) {
        const unsigned row = unit / across;
        return reinterpret_cast<Unit*>(destination + row * to_pitch +
                                       (unit - row * across) * sizeof(Unit));
    };
    const auto from = [=](unsigned unit) {
        const unsigned row = unit / across;
        return reinterpret_cast<const Unit*>(source + row * from_pitch +
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

template <class Unit>
GANTRY_DEVICE inline void move_part(const RowSet& set, Word destination, Word source, Word part,
                                    Word parts, unsigned lane) {
    const Word units = set.width / sizeof(Unit) * set.count;
    const Word share = ((units + parts - 1) / parts + kWarp - 1) & ~Word{kWarp - 1};
    const Word begin = part * share < units ? part * share : units;
    const Word end = units - begin < share ? units : begin + share;
    move_units<Unit>(set, destination, source, static_cast<unsigned>(begin),
                     static_cast<unsigned>(end), lane);
}

// `set_of(which)`: one set, from where they are.
template <class SetOf>
GANTRY_DEVICE inline void move_all(const MoveRows& work, SetOf set_of) {
    const unsigned lane = thread() % kWarp;
    const Word warp = block() * (threads() / kWarp) + thread() / kWarp;
    const Word warps = blocks() * (threads() / kWarp);
    const Word items = work.sets * work.parts;
    for (Word item = warp; item < items; item += warps) {
        const RowSet set = set_of(item / work.parts);
        const Word part = item % work.parts;
        const Word to = work.destination + set.destination, from = work.source + set.source;
        Word odd = to | from | set.width;
        if (set.count > 1) odd |= set.destination_pitch | set.source_pitch;
        if ((odd & 15) == 0)
            move_part<Quad>(set, to, from, part, work.parts, lane);
        else if ((odd & 7) == 0)
            move_part<Word>(set, to, from, part, work.parts, lane);
        else if ((odd & 3) == 0)
            move_part<unsigned>(set, to, from, part, work.parts, lane);
        else if ((odd & 1) == 0)
            move_part<unsigned short>(set, to, from, part, work.parts, lane);
        else
            move_part<unsigned char>(set, to, from, part, work.parts, lane);
    }
}

}  // namespace

// Two loops: one that chose between parameters and table would copy the parameters.
GANTRY_KERNEL void gantry_move_rows(MoveRows work) {
    if (work.table != 0) {
        const auto* table = reinterpret_cast<const RowSet*>(work.table);
        move_all(work, [table](Word which) GANTRY_DEVICE { return table[which]; });
    } else {
        move_all(work, [&work](Word which) GANTRY_DEVICE { return work.set[which]; });
    }
}

}  // namespace gantry::kernels

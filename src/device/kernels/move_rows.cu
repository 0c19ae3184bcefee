// SPDX-License-Identifier: BSD-3-Clause
//
// gantry_move_rows: packs or unpacks sets of rows, or planes of rows, in one launch. One end is this GPU's memory, the
// other may be page-locked memory of the host: what is packed goes over the link once, in order.
//
//   one warp     part p of set s, item = s x parts + p (row_units.hpp); stride = the warps of the grid
//
// No flag: the stream says when it has ended.
#include "row_units.hpp"

namespace gantry::kernels {
namespace {

// `set_of(which)`: one set, from where they are; `shape_of(which, set)`: where its rows lie.
template <class SetOf, class ShapeOf>
GANTRY_DEVICE inline void move_all(const MoveRows& work, SetOf set_of, ShapeOf shape_of) {
    const unsigned lane = thread() % kWarp;
    const Word warp = block() * (threads() / kWarp) + thread() / kWarp;
    const Word warps = blocks() * (threads() / kWarp);
    const Word items = work.sets * work.parts;
    for (Word item = warp; item < items; item += warps) {
        const RowSet set = set_of(item / work.parts);
        const auto shape = shape_of(item / work.parts, set);
        move_set(set, shape, work.destination + set.destination, work.source + set.source,
                 item % work.parts, work.parts, lane);
    }
}

}  // namespace

// Three loops: one that chose between parameters and table would copy the parameters, and rows of one
// plane are spared a division.
GANTRY_KERNEL void gantry_move_rows(MoveRows work) {
    const auto flat = [](Word, const RowSet& set) GANTRY_DEVICE {
        return Flat{set.destination_pitch, set.source_pitch};
    };
    if (work.table != 0) {
        const auto* table = reinterpret_cast<const RowSet*>(work.table);
        move_all(
            work, [table](Word which) GANTRY_DEVICE { return table[which]; }, flat);
    } else if (work.boxes != 0) {
        move_all(
            work, [&work](Word which) GANTRY_DEVICE { return work.set[which]; },
            [&work](Word which, const RowSet& set) GANTRY_DEVICE {
                return Box{set.destination_pitch, set.source_pitch,
                           static_cast<unsigned>(set.count), work.planes[which]};
            });
    } else {
        move_all(
            work, [&work](Word which) GANTRY_DEVICE { return work.set[which]; }, flat);
    }
}

}  // namespace gantry::kernels

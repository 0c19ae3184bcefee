// SPDX-License-Identifier: BSD-3-Clause
//
// For tests: the blocks of one element of a layout, in packed order, adjacent ones merged.
#pragma once

#include "layout/rows.hpp"

#include <algorithm>
#include <vector>

namespace gantry::layout {

inline std::vector<Block> blocks_of(const Layout& layout) {
    struct Run {
        Bytes packed;
        Block block;
    };
    std::vector<Run> runs;
    RowWalk walk(layout, 0, layout.size);
    for (Rows rows; walk.next(rows);)
        for (Bytes row = 0; row < rows.count; ++row)
            runs.push_back(
                {rows.packed + row * rows.packed_pitch,
                 {rows.offset + static_cast<std::ptrdiff_t>(row * rows.pitch), rows.width}});
    std::ranges::sort(runs, {}, &Run::packed);
    std::vector<Block> blocks;
    for (const Run& run : runs) {
        const Block& block = run.block;
        if (!blocks.empty() &&
            blocks.back().offset + static_cast<std::ptrdiff_t>(blocks.back().bytes) == block.offset)
            blocks.back().bytes += block.bytes;
        else
            blocks.push_back(block);
    }
    return blocks;
}

}  // namespace gantry::layout

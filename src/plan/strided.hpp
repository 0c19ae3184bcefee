// SPDX-License-Identifier: BSD-3-Clause
//
// How a piece of a strided device buffer comes to packed memory, or back: by a kernel, by the copy
// engine in sets of rows, or (out only) with all that lies between, packed by the processor.
#pragma once

#include "plan/p2p_model.hpp"

namespace gantry::plan {

struct StridedPiece {
    Bytes bytes = 0;  // of data
    Bytes rows = 0, sets = 0;
    Bytes span = 0;  // from the first byte to the last
    bool out = true;
    Bytes boxes = 0;  // as a kernel may take it, where these are few enough for one launch; 0: not
    bool aside = false;  // what is packed lies where no kernel reaches it: one more copy
};

enum class StridedWay : std::uint8_t { kernel, rows, span };

// What may move it. On a GPU that two processes use a kernel waits for its turn.
enum class Movers : std::uint8_t { copy_engines, kernels, kernels_by_turns };

StridedWay strided_way(const device::GpuFacts& gpu, const StridedPiece& piece, Movers movers);

}  // namespace gantry::plan

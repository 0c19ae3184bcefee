// SPDX-License-Identifier: BSD-3-Clause
//
// How strided data leaves a device: block by block, or with all that lies between.
#pragma once

#include "plan/p2p_model.hpp"

namespace gantry::plan {

// Whether one copy of the whole span is cheaper than `copies` of its data alone.
inline bool whole_span_wins(const device::GpuFacts& gpu, Bytes span, Bytes data, Bytes copies) {
    return transfer_time(span, gpu.d2h_bytes_per_second) <
           static_cast<Nanoseconds>(copies - 1) * gpu.chunk_cost +
               transfer_time(data, gpu.d2h_bytes_per_second);
}

}  // namespace gantry::plan

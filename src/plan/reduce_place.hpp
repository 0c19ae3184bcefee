// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a rank reduces vectors of device memory by kernels, or copies them to the host and lets the
// processor reduce: pure, and from the machine's costs only. Ranks need not agree.
#pragma once

#include "device/facts.hpp"

#include <string_view>

namespace gantry::plan {

struct ReduceQuestion {
    Bytes bytes = 0;  // of one vector
    int steps = 1;    // vectors that come and are reduced, one behind the other; 0: none
    bool source_on_device = false, sink_on_device = false;
    bool direct = false;       // messages between GPUs are one copy, no slots
    bool time_sliced = false;  // a kernel waits for a time slice of its GPU
};

enum class ReducePlace : std::uint8_t { host, gpu };

// `fixed`: what the user said (GANTRY_REDUCE_ON).
ReducePlace reduce_place(const device::GpuFacts& gpu, const ReduceQuestion& question,
                         std::string_view fixed = "auto");

}  // namespace gantry::plan

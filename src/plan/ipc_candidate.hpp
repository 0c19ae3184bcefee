// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// Header, credit and bookkeeping of one piece, on either side.
inline constexpr Nanoseconds kPieceHandling = 300;

// How the end of a copy that is alone is seen best, by what it costs to see its event. On an H200 a
// flag costs 1.2 us more than an event behind a copy to another GPU; behind one inside a GPU that
// processes share by MPS or to and from host memory, half a microsecond less or more.
inline Completion seen_by(const device::GpuFacts& gpu, Nanoseconds event) {
    return gpu.flag_write < event ? Completion::flag : Completion::event;
}

Candidate ipc_candidate(const Ask& ask);

}  // namespace gantry::plan

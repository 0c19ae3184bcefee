// SPDX-License-Identifier: BSD-3-Clause
//
// What one copy from end to end costs, with no slot between.
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// One core copying between two host buffers that the cache holds (eager payloads, packing).
inline constexpr double kHostCopyRate = 10e9;

// Up to here a copy out of a slot by the processor costs less than a persistent kernel saves.
inline constexpr Bytes kResidentUpTo = 4 * kKiB;

// A whole copy from end to end by one process: the leg, and who drives it.
struct DirectCopy {
    Nanoseconds latency = 0;
    double bytes_per_second = 0;
    CopyEngine engine = CopyEngine::copy_engine;
};

DirectCopy direct_copy(const Ask& ask, bool one_gpu, Executor executor);

// Whether bytes that are received aside are sooner in device memory if that is on the same GPU than if it
// is pageable host memory. They may have to be copied in either way: out of slots, or out of that memory.
// `turn`: what a copy inside that GPU waits for its compute queue.
bool sooner_from_inside(const device::GpuFacts& gpu, Bytes bytes, Nanoseconds turn);

}  // namespace gantry::plan

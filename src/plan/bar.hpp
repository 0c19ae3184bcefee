// SPDX-License-Identifier: BSD-3-Clause
//
// What a BAR mapping of device memory (GDRCopy) is worth: the processor loads and stores the bytes of a
// small message itself. A load crosses the bus and comes back, a few bytes at a time; stores are
// combined and need no answer. So what is read must be small, what is written may be larger, and
// nobody else is asked: where the engines' fixed price is more, the BAR mapping wins.
#pragma once

#include "plan/ask.hpp"
#include "plan/p2p_model.hpp"

namespace gantry::plan {

// No read through one is larger, whatever the facts say: it holds up the processor.
inline constexpr Bytes kLargestBarRead = 4 * kKiB;
inline constexpr Bytes kLargestBarWrite = 64 * kKiB;

Nanoseconds bar_read_time(const device::GpuFacts& gpu, Bytes bytes);
Nanoseconds bar_write_time(const device::GpuFacts& gpu, Bytes bytes);
// Whether one beats a copy engine between device memory and a host buffer.
bool bar_reads_win(const device::GpuFacts& gpu, Bytes bytes);
bool bar_writes_win(const device::GpuFacts& gpu, Bytes bytes);

// The same for a message whose end has one.
inline bool reads_by_bar(const Ask& ask) {
    return ask.source_bar && ask.source.on_device() && ask.source.contiguous &&
           bar_reads_win(ask.source_gpu, ask.bytes);
}
inline bool writes_by_bar(const Ask& ask) {
    return ask.sink_bar && ask.sink.on_device() && ask.sink.contiguous &&
           bar_writes_win(ask.sink_gpu, ask.bytes);
}

// Out of a slot into device memory. The processor does one piece after the other.
inline Leg bar_leg(const device::GpuFacts& gpu, Nanoseconds handling) {
    return {gpu.bar_write + handling, gpu.bar_write + handling, gpu.bar_write_bytes_per_second};
}

inline bool uses_bar(const Plan& plan) {
    return plan.source_engine == CopyEngine::bar || plan.sink_engine == CopyEngine::bar;
}

}  // namespace gantry::plan

// SPDX-License-Identifier: BSD-3-Clause
//
// What a window on device memory (GDRCopy) is worth: the processor loads and stores the bytes of a
// small message itself. A load crosses the bus and comes back, a few bytes at a time; stores are
// combined and need no answer. So what is read must be small, what is written may be larger, and
// nobody else is asked: where the engines' fixed price is more, the window wins.
#pragma once

#include "plan/ask.hpp"
#include "plan/p2p_model.hpp"

namespace gantry::plan {

// No read by window is larger, whatever the facts say: it holds up the processor.
inline constexpr Bytes kLargestWindowRead = 4 * kKiB;
inline constexpr Bytes kLargestWindowWrite = 64 * kKiB;

Nanoseconds window_read_time(const device::GpuFacts& gpu, Bytes bytes);
Nanoseconds window_write_time(const device::GpuFacts& gpu, Bytes bytes);
// Whether a window beats a copy engine between device memory and a host buffer.
bool window_reads_win(const device::GpuFacts& gpu, Bytes bytes);
bool window_writes_win(const device::GpuFacts& gpu, Bytes bytes);

// The same for a message whose end has a window.
inline bool reads_by_window(const Ask& ask) {
    return ask.source_window && ask.source.on_device() && ask.source.contiguous &&
           window_reads_win(ask.source_gpu, ask.bytes);
}
inline bool writes_by_window(const Ask& ask) {
    return ask.sink_window && ask.sink.on_device() && ask.sink.contiguous &&
           window_writes_win(ask.sink_gpu, ask.bytes);
}

// Out of a slot into device memory. The processor does one piece after the other.
inline Leg window_leg(const device::GpuFacts& gpu, Nanoseconds handling) {
    return {gpu.window_write + handling, gpu.window_write + handling,
            gpu.window_write_bytes_per_second};
}

inline bool uses_window(const Plan& plan) {
    return plan.source_engine == CopyEngine::window || plan.sink_engine == CopyEngine::window;
}

}  // namespace gantry::plan

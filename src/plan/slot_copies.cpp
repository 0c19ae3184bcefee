// SPDX-License-Identifier: BSD-3-Clause
#include "plan/slot_copies.hpp"

#include "plan/bar.hpp"
#include "plan/direct_copy.hpp"

#include <algorithm>

namespace gantry::plan {

// Whether a kernel stays on that GPU is not known. One does where messages bound for host memory
// are close to each other; elsewhere a slot costs hardly more than a direct copy. A copy engine
// starts before the request travels, and inside a node the stream tells the end of the copy: that
// copy waits for neither hop.
Nanoseconds latency_to_slot(const Ask& ask) {
    const device::GpuFacts& gpu = ask.source_gpu;
    const bool is_time_sliced = (ask.facts.same_gpu || ask.facts.gpu_shared) && gpu.queue_turn > 0;
    const bool small = gpu.resident_out_latency > 0 && ask.bytes <= kResidentUpTo &&
                       !is_time_sliced && !by_copy_engine(ask.sink) && !reads_by_bar(ask);
    const Nanoseconds hops = ask.peer.shared_memory ? 2 * ask.hop : 0;
    return small ? std::min(std::max<Nanoseconds>(gpu.copy_latency - hops, 0),
                            gpu.resident_out_latency)
                 : gpu.copy_latency;
}

CopyEngine slot_engine(const Ask& ask, const End& end) {
    if (!by_copy_engine(end)) return CopyEngine::cpu;
    if (end.contiguous) return CopyEngine::copy_engine;
    // Where two processes share the GPU a kernel would wait for its turn, and sets of rows do not.
    const bool shared = ask.facts.same_gpu || ask.facts.gpu_shared;
    const bool is_time_sliced = shared && ask.source_gpu.queue_turn > 0;
    return ask.tuning.kernels && !is_time_sliced ? CopyEngine::kernel : CopyEngine::copy_engine_2d;
}

}  // namespace gantry::plan

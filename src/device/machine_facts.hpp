// SPDX-License-Identifier: BSD-3-Clause
//
// A described machine in the planner's words: what the fake device answers, and what the real one
// starts from before it has measured.
#pragma once

#include "device/facts.hpp"
#include "model/machine.hpp"

#include <algorithm>

namespace gantry::device {

// Without the UUID, which belongs to a GPU and not to its description. `mps`: its processes are
// known to share one compute queue.
inline GpuFacts gpu_facts(const model::Machine& machine, bool mps = false) {
    const model::Gpu& gpu = mps ? machine.gpu_under_mps : machine.gpu;
    GpuFacts facts;
    facts.mps = mps;
    facts.copy_engines = gpu.copy_engines;
    facts.d2h_bytes_per_second = gpu.d2h.rate.peak();
    facts.h2d_bytes_per_second = gpu.h2d.rate.peak();
    facts.d2d_bytes_per_second = gpu.d2d.rate.peak();
    facts.peer_bytes_per_second = machine.peer_access ? gpu.peer.rate.peak() : 0;
    facts.peer_get_bytes_per_second =
        machine.peer_access && !gpu.peer_get.rate.points().empty() ? gpu.peer_get.rate.peak() : 0;
    if (machine.peer_access && gpu.peer_get.latency > 0)
        facts.peer_get_more = std::max<Nanoseconds>(gpu.peer_get.latency - gpu.peer.latency, 0);
    facts.copy_latency = gpu.d2h.latency;
    facts.copy_in_latency = gpu.h2d.latency;
    facts.pageable_latency = std::max(gpu.pageable_d2h.latency, gpu.d2h.latency);
    facts.chunk_cost = gpu.d2h.gap;
    facts.row_ns = gpu.d2h.row;
    facts.row_into_ns = gpu.h2d.row;
    facts.kernel_latency = gpu.kernel.latency;
    facts.resident_latency = gpu.kernel.resident;
    facts.resident_out_latency = gpu.kernel.resident_out;
    facts.resident_in_latency = gpu.kernel.resident_in;
    facts.launch = gpu.calls.launch;
    facts.queue_turn = gpu.turn;
    facts.h2d_without_turn = gpu.h2d.turn_below;
    facts.pageable_without_turn = gpu.pageable_h2d.turn_below;
    facts.ipc_open = gpu.calls.ipc_open;
    facts.ipc_open_peer = gpu.calls.ipc_open_peer;
    facts.pool_open = gpu.calls.pool_open;
    facts.pool_open_peer = gpu.calls.pool_open_peer;
    facts.vmm_open = gpu.calls.vmm_open;
    facts.ipc_pair = gpu.calls.ipc_pair;
    facts.ipc_open_large = gpu.calls.ipc_open_large;
    facts.pool_first = gpu.calls.pool_first;
    facts.page_lock = gpu.calls.register_host;
    facts.event_query = gpu.calls.event_query;
    facts.flag_write = gpu.calls.write_value;
    // A query of the driver is made about twice until the end is known.
    facts.event_seen = gpu.calls.event_seen > 0 ? gpu.calls.event_seen : 2 * gpu.calls.event_query;
    facts.d2d_event_seen =
        gpu.calls.d2d_event_seen > 0 ? gpu.calls.d2d_event_seen : facts.event_seen;
    facts.host_event_seen =
        gpu.calls.host_event_seen > 0 ? gpu.calls.host_event_seen : facts.event_seen;
    facts.launch_worth_bytes = gpu.kernel.worth_bytes;
    facts.launch_worth_copies = static_cast<unsigned>(gpu.kernel.worth_copies);
    facts.launch_enough_blocks = static_cast<unsigned>(gpu.kernel.enough_blocks);
    facts.kernel_stores = gpu.kernel.peer_stores;
    facts.kernel_loads = gpu.kernel.peer_loads;
    facts.bar_open = gpu.window.open;
    facts.bar_read = gpu.window.read;
    facts.bar_write = gpu.window.write;
    facts.bar_read_bytes_per_second = gpu.window.read_bytes_per_second;
    facts.bar_write_bytes_per_second = gpu.window.write_bytes_per_second;
    // Where the driver's way and slots lie close to each other; its rate goes on rising.
    facts.pageable_bytes_per_second = gpu.pageable_d2h.rate.at(kMiB);
    const model::Rate& memcpy = machine.host.memcpy;
    if (!memcpy.points().empty()) {
        // Of messages that are not streamed (plan::kStreamedFrom): the largest of them.
        facts.host_bytes_per_second = memcpy.at(kMiB);
        facts.host_streaming_bytes_per_second = machine.host.streaming > 0
                                                    ? machine.host.streaming
                                                    : memcpy.points().back().bytes_per_second;
    }
    return facts;
}

}  // namespace gantry::device

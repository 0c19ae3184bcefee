// SPDX-License-Identifier: BSD-3-Clause
#include "plan/coll_facts.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

// The processor's part of a message: matching, a task that goes on.
constexpr Nanoseconds kHandling = 250;

CollWay way_of(const model::Link& link) {
    return {.latency = link.latency + link.message_cost + kHandling,
            .handling = link.message_cost + kHandling,
            .bytes_per_second = link.all_rails(),
            .eager_limit = link.eager_limit};
}

// Cards that reach device memory lie beside the GPUs, one for each; others are one card of the node.
std::int16_t cards_of(const model::Machine& machine) {
    constexpr int kMost = 1000;
    return machine.network.device_memory
               ? static_cast<std::int16_t>(std::clamp(machine.gpus_per_node, 1, kMost))
               : std::int16_t{1};
}

}  // namespace

CollFacts coll_facts_of(const model::Machine& machine) {
    CollFacts facts;
    facts.inside = way_of(machine.shared_memory);
    facts.between = way_of(machine.network);
    facts.cards = cards_of(machine);
    facts.network_reaches_devices = machine.network.device_memory;
    facts.copy_bytes_per_second = machine.host.memcpy.peak();
    facts.read_bytes_per_second = facts.inside.bytes_per_second;
    if (!machine.shared_memory.read_rate.points().empty()) {
        facts.read_bytes_per_second = machine.shared_memory.read_rate.peak();
        facts.read_call = machine.shared_memory.read_latency;
    }
    // Two vectors are read and one is written, in the cache.
    facts.reduce_bytes_per_second = facts.copy_bytes_per_second / 2;
    facts.node_segment.flag = machine.host.flag;
    const model::Gpu& gpu = machine.gpu;
    facts.gpu.launch = gpu.kernel.latency;
    facts.gpu.resident = gpu.kernel.resident > 0 ? gpu.kernel.resident : gpu.kernel.latency;
    facts.gpu.copy = gpu.d2d.latency;
    facts.gpu.out = gpu.d2h.latency;
    facts.gpu.further = gpu.calls.copy + gpu.calls.event_record;
    facts.gpu.turn = gpu.turn;
    facts.gpu.host_bytes_per_second = gpu.d2h.rate.peak();
    facts.gpu.local_bytes_per_second = gpu.d2d.rate.peak();
    // An RTS, a copy, a FIN; where GPUs do not reach each other, out to the host and in again.
    const bool direct = machine.ipc && machine.peer_access && gpu.peer.rate.peak() > 0;
    facts.gpu.message = 2 * (machine.shared_memory.latency + machine.shared_memory.message_cost) +
                        (direct ? gpu.peer.latency : gpu.d2h.latency + gpu.h2d.latency);
    facts.gpu.peer_bytes_per_second = direct ? gpu.peer.rate.peak() : gpu.d2h.rate.peak();
    return facts;
}

CollWay coll_way_of(const transport::PeerFacts& way) {
    return {.latency = way.message_latency + kHandling,
            .handling = kHandling,
            .bytes_per_second = way.bytes_per_second * std::max(way.rails, 1),
            .eager_limit = std::min(way.eager_limit, way.eager_max)};
}

}  // namespace gantry::plan

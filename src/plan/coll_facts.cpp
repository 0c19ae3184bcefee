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
            .bytes_per_second = link.rate.peak() * std::max(link.rails, 1),
            .eager_limit = link.eager_limit};
}

}  // namespace

CollFacts coll_facts_of(const model::Machine& machine) {
    CollFacts facts;
    facts.inside = way_of(machine.shared_memory);
    facts.between = way_of(machine.network);
    facts.copy_bytes_per_second = machine.host.memcpy.peak();
    // Two vectors are read and one is written, in the cache.
    facts.reduce_bytes_per_second = facts.copy_bytes_per_second / 2;
    const model::Gpu& gpu = machine.gpu;
    facts.gpu = {.launch = gpu.kernel.latency,
                 .resident = gpu.kernel.resident,
                 .turn = gpu.turn,
                 .copy = gpu.d2h.latency,
                 .peer_bytes_per_second = machine.peer_access ? gpu.peer.rate.peak() : 0,
                 .local_bytes_per_second = gpu.d2d.rate.peak(),
                 .host_bytes_per_second = gpu.d2h.rate.peak()};
    return facts;
}

CollWay coll_way_of(const transport::PeerFacts& way) {
    return {.latency = way.message_latency + kHandling,
            .handling = kHandling,
            .bytes_per_second = way.bytes_per_second * std::max(way.rails, 1),
            .eager_limit = std::min(way.eager_limit, way.eager_max)};
}

}  // namespace gantry::plan

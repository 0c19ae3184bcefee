// SPDX-License-Identifier: BSD-3-Clause
#include "plan/network_reach.hpp"

#include <algorithm>

namespace gantry::plan {

int rails_for(const Ask& ask, Bytes piece) {
    if (ask.tuning.rail_stripe == 0) return 1;
    const Bytes useful = std::max<Bytes>(1, piece / ask.tuning.rail_stripe);
    return static_cast<int>(
        std::min<Bytes>(useful, static_cast<Bytes>(std::max(1, ask.peer.rails))));
}

bool rails_reach(const End& end, Reach reach) {
    if (!end.contiguous || end.kind == MemoryKind::managed || reach == Reach::nothing) return false;
    return end.kind != MemoryKind::device || reach == Reach::device_memory;
}

double wire_rate(const Ask& ask, Stage source, Stage sink) {
    const transport::PeerFacts& peer = ask.peer;
    double rate = peer.bytes_per_second;
    if (source == Stage::direct && ask.source.on_device() && peer.device_read_bytes_per_second > 0)
        rate = std::min(rate, peer.device_read_bytes_per_second);
    if (sink == Stage::direct && ask.sink.on_device() && peer.device_write_bytes_per_second > 0)
        rate = std::min(rate, peer.device_write_bytes_per_second);
    return rate;
}

}  // namespace gantry::plan

// SPDX-License-Identifier: BSD-3-Clause
#include "coll/node/neighbor_blocks.hpp"

#include "transfer/pack.hpp"

#include <algorithm>

namespace gantry::coll {

NeighborBlocks::NeighborBlocks(const Planner::OnNode& node,
                               const std::vector<NeighborTraffic::Edge>& edges) {
    for (const NeighborTraffic::Edge& edge : edges) {
        const int member = node.index_of(edge.rank);
        each.push_back({.member = member});
        if (member >= 0 && std::ranges::find(members, member) == members.end())
            members.push_back(member);
    }
}

void NeighborBlocks::locate(transfer::Context& context,
                            const std::vector<NeighborTraffic::Edge>& edges) {
    device::Device& device = context.device;
    const bool devices = context.config.cuda && context.tuning.kernels && device.active();
    for (std::size_t place = 0; place < edges.size(); ++place) {
        const p2p::Buffer& block = edges[place].block;
        if (each[place].member < 0 || block.bytes() == 0) continue;
        const bool first = count++ == 0;
        bytes += block.bytes();
        if (memory == Held::other) continue;
        memory = Held::other;
        const bool is_strided = !block.contiguous();
        if (!devices || (is_strided && block.address == nullptr)) continue;
        Result<device::Location> location = is_strided
                                                ? transfer::locate_blocks(device, block)
                                                : device.classify(block.data(), block.bytes());
        if (!location.ok() || !location->on_device() || (!first && location->gpu != gpu)) continue;
        if (is_strided && !transfer::in_one_allocation({block, *location, 0, block.bytes()}))
            continue;
        memory = Held::device;
        gpu = location->gpu;
        strided = strided || is_strided;
        each[place].location = *location;
    }
    if (memory != Held::device) return;
    context.arbiter.use(gpu);
    time_sliced = context.arbiter.is_time_sliced(gpu);
}

}  // namespace gantry::coll

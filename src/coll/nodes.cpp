// SPDX-License-Identifier: BSD-3-Clause
#include "coll/nodes.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

// Beside the team's own messages and node segments; peers go by world rank in it.
p2p::Group group_beside(const Team& team) {
    p2p::Group group;
    group.context = team.group->context | p2p::kNodesContext;
    group.shared_context = true;
    group.traffic = team.group->traffic;
    return group;
}

Team part(const Run& run, const p2p::Group& group, Planner& planner, int phase) {
    Team team = run.team;
    team.group = &group;
    team.first = 0;
    team.count = -1;
    team.border = 0;
    team.planner = &planner;
    team.phase = phase;
    team.before = &run.status();
    return team;
}

}  // namespace

Nodes::Nodes(const Team& team, Common* common)
    : inside(group_beside(team)),
      across(group_beside(team)),
      inside_planner(common),
      across_planner(common) {
    GANTRY_ASSERT(common != nullptr && !common->nodes.empty());
    std::vector<int> order;  // the job's numbers of nodes, by ours
    std::vector<std::vector<int>> peers;
    for (int rank = 0; rank < team.size(); ++rank) {
        const int peer = team.group->peer(team.in_group(rank));
        const int node = common->nodes[static_cast<std::size_t>(peer)];
        const auto known = std::ranges::find(order, node);
        const auto index = static_cast<std::size_t>(known - order.begin());
        if (known == order.end()) {
            order.push_back(node);
            peers.emplace_back();
            starts.push_back(rank);
        }
        place_of.push_back({static_cast<int>(index), static_cast<int>(peers[index].size())});
        peers[index].push_back(peer);
    }
    starts.push_back(team.size());
    const Place mine = place_of[static_cast<std::size_t>(team.rank())];
    inside.peers = peers[static_cast<std::size_t>(mine.node)];
    inside.rank = mine.number;
    leaders = inside.size();
    for (const std::vector<int>& each : peers)
        leaders = std::min(leaders, static_cast<int>(each.size()));
    across.rank = mine.node;
    if (mine.number >= leaders) return;
    for (const std::vector<int>& each : peers)
        across.peers.push_back(each[static_cast<std::size_t>(mine.number)]);
}

Team inside_of(const Run& run, Nodes& nodes, int phase) {
    return part(run, nodes.inside, nodes.inside_planner, phase);
}

Team across_of(const Run& run, Nodes& nodes, int phase) {
    return part(run, nodes.across, nodes.across_planner, phase);
}

Team across_of(const Run& run, Nodes& nodes, int phase, plan::Collective operation, Bytes bytes) {
    Team team = across_of(run, nodes, phase);
    if (!team.in_background()) team.memory = run.team.planner->known_memory().of(operation, bytes);
    return team;
}

Nodes& nodes_of(const Team& team) {
    return team.planner->nodes(team);
}

}  // namespace gantry::coll

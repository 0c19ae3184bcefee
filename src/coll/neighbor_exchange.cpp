// SPDX-License-Identifier: BSD-3-Clause
//
// By messages every receive is posted and every send is queued at once; all blocks travel at the same
// time. Messages: one for each edge of the topology. Memory: none beyond the blocks.
//
// All messages have the operation's one tag. Messages of one pair of ranks meet their receives in
// order, so who has several blocks for the same rank sends them in the order in which that rank
// posts its receives: the order of its list. For a grid that is the order of the opposite places:
// what goes one step back along dimension d (place 2d) is received from one step forth (place
// 2d + 1), so place 1 is sent before place 0, place 3 before place 2.
#include "coll/neighbor_exchange.hpp"

#include "base/scope.hpp"
#include "coll/exchange.hpp"
#include "coll/node/neighbor.hpp"
#include "coll/planner.hpp"

#include <mpi.h>

namespace gantry::coll {
namespace {

NeighborTraffic traffic_of(const Neighbors& neighbors, const Blocks& outgoing,
                           const Blocks& incoming) {
    const std::vector<int>&sources = neighbors.sources, &destinations = neighbors.destinations;
    const std::size_t turned = neighbors.pairing == Neighbors::Pairing::opposite ? 1 : 0;
    NeighborTraffic traffic;
    for (std::size_t place = 0; place < sources.size(); ++place)
        if (sources[place] != MPI_PROC_NULL)
            traffic.incoming.push_back({sources[place], incoming.of(static_cast<int>(place))});
    for (std::size_t i = 0; i < destinations.size(); ++i) {
        const std::size_t place = i ^ turned;
        if (destinations[place] != MPI_PROC_NULL)
            traffic.outgoing.push_back({destinations[place], outgoing.of(static_cast<int>(place))});
    }
    return traffic;
}

Task<Status> by_messages(Executor& executor, Team team, NeighborTraffic traffic) {
    Scope blocks(executor);
    for (const NeighborTraffic::Edge& edge : traffic.incoming)
        blocks.spawn(receive(executor, team, edge.block, edge.rank));
    for (const NeighborTraffic::Edge& edge : traffic.outgoing)
        blocks.spawn(send(executor, team, edge.block, edge.rank));
    Status met = co_await blocks.join(executor);
    co_return met;
}

}  // namespace

Task<Status> neighbor_exchange(Executor& executor, Team team,
                               std::shared_ptr<const Neighbors> neighbors, Blocks outgoing,
                               Blocks incoming) {
    NeighborTraffic traffic = traffic_of(*neighbors, outgoing, incoming);
    const plan::CallQuestion question{.operation = plan::Collective::neighbor};
    if (plan_of(team, question).meet && team.planner != nullptr)
        return neighbors_directly(executor, team, std::move(traffic), question);
    return by_messages(executor, team, std::move(traffic));
}

Blocks same_for_all(const p2p::Buffer& mine, std::size_t destinations) {
    Blocks blocks;
    blocks.address = mine.address;
    blocks.layout = mine.layout;
    blocks.counts.assign(destinations, static_cast<std::int64_t>(mine.count));
    blocks.displacements.assign(destinations, 0);
    return blocks;
}

}  // namespace gantry::coll

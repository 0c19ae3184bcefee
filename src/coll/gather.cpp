// SPDX-License-Identifier: BSD-3-Clause
//
// Gather and scatter: the root exchanges with everybody at once; blocks pass no third rank.
#include "coll/gather.hpp"

#include "base/scope.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/exchange.hpp"

namespace gantry::coll {

Task<Status> gather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                    bool in_place) {
    if (may_exchange_directly(team)) {
        Traffic traffic(team.size());
        traffic.only_receiver = root;
        const auto to = static_cast<std::size_t>(root);
        if (team.rank() != root || !in_place) traffic.outgoing[to] = mine;
        for (int each = 0; team.rank() == root && each < team.size(); ++each)
            if (each != root || !in_place)
                traffic.incoming[static_cast<std::size_t>(each)] = all.of(each);
        Result<bool> exchanged = co_await exchange_directly(executor, team, std::move(traffic));
        if (!exchanged.ok()) co_return std::move(exchanged).status();
        if (*exchanged) co_return success();
    }
    if (team.rank() != root) {
        Status sent = co_await send(executor, team, mine, root);
        co_return sent;
    }
    Scope blocks(executor);
    for (int rank = 0; rank < team.size(); ++rank) {
        if (rank != root)
            blocks.spawn(receive(executor, team, all.of(rank), rank));
        else if (!in_place)
            blocks.spawn(copy_local(executor, team, mine, all.of(rank)));
    }
    Status gathered = co_await blocks.join(executor);
    co_return gathered;
}

Task<Status> scatter(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                     bool in_place) {
    if (may_exchange_directly(team)) {
        Traffic traffic(team.size());
        traffic.only_sender = root;
        const auto from = static_cast<std::size_t>(root);
        if (team.rank() != root || !in_place) traffic.incoming[from] = mine;
        for (int each = 0; team.rank() == root && each < team.size(); ++each)
            if (each != root || !in_place)
                traffic.outgoing[static_cast<std::size_t>(each)] = all.of(each);
        Result<bool> exchanged = co_await exchange_directly(executor, team, std::move(traffic));
        if (!exchanged.ok()) co_return std::move(exchanged).status();
        if (*exchanged) co_return success();
    }
    if (team.rank() != root) {
        Status received = co_await receive(executor, team, mine, root);
        co_return received;
    }
    Scope blocks(executor);
    for (int rank = 0; rank < team.size(); ++rank) {
        if (rank != root)
            blocks.spawn(send(executor, team, all.of(rank), rank));
        else if (!in_place)
            blocks.spawn(copy_local(executor, team, all.of(rank), mine));
    }
    Status scattered = co_await blocks.join(executor);
    co_return scattered;
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Gather and scatter: the root exchanges with everybody at once; blocks pass no third rank.
#include "coll/gather.hpp"

#include "base/scope.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/exchange.hpp"

namespace gantry::coll {
namespace {

Task<Status> gather_by_messages(Executor& executor, Team team, p2p::Buffer mine, Blocks all,
                                int root, bool in_place) {
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

Task<Status> scatter_by_messages(Executor& executor, Team team, Blocks all, p2p::Buffer mine,
                                 int root, bool in_place) {
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

}  // namespace

Task<Status> gather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                    bool in_place) {
    return directly_or(executor, gather_directly(executor, team, mine, all, root, in_place),
                       gather_by_messages(executor, team, mine, all, root, in_place));
}

Task<Status> scatter(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                     bool in_place) {
    return directly_or(executor, scatter_directly(executor, team, all, mine, root, in_place),
                       scatter_by_messages(executor, team, all, mine, root, in_place));
}

}  // namespace gantry::coll

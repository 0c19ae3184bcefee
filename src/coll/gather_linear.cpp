// SPDX-License-Identifier: BSD-3-Clause
//
// The root exchanges with everybody at once; blocks pass no third rank.
//
//     steps 1; messages at the root P - 1; memory: none
#include "coll/gather_algorithms.hpp"
#include "coll/host_image.hpp"

namespace gantry::coll {

Task<Status> gather_linear(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                           bool in_place) {
    Run run(team);
    if (team.rank() != root) {
        Status sent = co_await send(executor, run, mine, root);
        co_return sent;
    }
    InFlight messages(run);
    for (int rank = 0; rank < team.size(); ++rank)
        if (rank != root) messages.receive(all.of(rank), rank);
    if (!in_place) {
        Status placed = co_await copy(executor, team, mine, all.of(root));
        run.note(std::move(placed));
    }
    Status gathered = co_await messages.all(executor);
    co_return run.status();
}

Task<Status> scatter_linear(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                            bool in_place) {
    Run run(team);
    if (team.rank() != root) {
        Status received = co_await receive(executor, run, mine, root);
        co_return received;
    }
    InFlight messages(run);
    for (int rank = 0; rank < team.size(); ++rank)
        if (rank != root) messages.send(all.of(rank), rank);
    if (!in_place) {
        Status placed = co_await copy(executor, team, all.of(root), mine);
        run.note(std::move(placed));
    }
    Status scattered = co_await messages.all(executor);
    co_return run.status();
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Dissemination: in round k each rank tells the one 2^k above it and hears from the one 2^k below it;
// after ceil(log2 P) rounds it has heard, directly or not, from everybody.
//
//     steps ceil(log2 P), an empty message in each; memory: none
#include "coll/barrier.hpp"

#include "coll/exchange.hpp"
#include "coll/hierarchical.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {
namespace {

Task<Status> dissemination(Executor& executor, Team team) {
    Run run(team);
    const int size = team.size();
    const p2p::Buffer nothing = transfer::bytes_buffer(nullptr, 0);
    for (int distance = 1; distance < size; distance *= 2) {
        const int to = (team.rank() + distance) % size;
        const int from = (team.rank() - distance + size) % size;
        Status met = co_await exchange(executor, run, nothing, to, nothing, from);
    }
    co_return run.status();
}

Task<Status> over_nodes(Executor& executor, Team team) {
    Run run(team);
    Status met = co_await barrier_hierarchical(executor, run);
    co_return met;
}

}  // namespace

Task<Status> barrier(Executor& executor, Team team) {
    const plan::CollPlan plan = plan_of(team, {.operation = plan::Collective::barrier});
    if (plan.algorithm == plan::Algorithm::hierarchical) return over_nodes(executor, team);
    return dissemination(executor, team);
}

}  // namespace gantry::coll

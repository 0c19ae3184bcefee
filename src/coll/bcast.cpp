// SPDX-License-Identifier: BSD-3-Clause
#include "coll/bcast.hpp"

#include "coll/bcast_algorithms.hpp"
#include "coll/hierarchical.hpp"
#include "coll/on_node.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {

namespace {

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer buffer, int root,
                         plan::CollPlan plan) {
    if (plan.algorithm == plan::Algorithm::hierarchical) {
        Run run(team);
        Status told = co_await bcast_hierarchical(executor, run, buffer, root);
        co_return told;
    }
    Task<Status> way;
    switch (plan.algorithm) {
        case plan::Algorithm::scatter_allgather:
            way = bcast_scatter_allgather(executor, team, buffer, root);
            break;
        case plan::Algorithm::chain:
            way = bcast_chain(executor, team, buffer, root, plan.segment);
            break;
        default: way = bcast_binomial(executor, team, buffer, root); break;
    }
    Status done = co_await std::move(way);
    co_return done;
}

}  // namespace

Task<Status> bcast(Executor& executor, Team team, p2p::Buffer buffer, int root) {
    const plan::CallQuestion question{.operation = plan::Collective::bcast,
                                      .bytes = buffer.bytes()};
    const plan::CollPlan plan = plan_of(team, question, buffer);
    if (plan.meet)
        return on_node(executor, bcast_directly(executor, team, buffer, root, question),
                       [&executor, team, buffer, root](plan::CollPlan other) {
                           return by_messages(executor, team, buffer, root, other);
                       });
    return by_messages(executor, team, buffer, root, plan);
}

}  // namespace gantry::coll

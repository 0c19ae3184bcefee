// SPDX-License-Identifier: BSD-3-Clause
#include "coll/bcast.hpp"

#include "coll/bcast_algorithms.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {

Task<Status> bcast(Executor& executor, Team team, p2p::Buffer buffer, int root) {
    const plan::CollPlan plan =
        plan_of(team, {.operation = plan::Collective::bcast, .bytes = buffer.bytes()});
    switch (plan.algorithm) {
        case plan::Algorithm::scatter_allgather:
            return bcast_scatter_allgather(executor, team, buffer, root);
        case plan::Algorithm::chain: return bcast_chain(executor, team, buffer, root, plan.segment);
        default: return bcast_binomial(executor, team, buffer, root);
    }
}

}  // namespace gantry::coll

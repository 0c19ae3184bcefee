// SPDX-License-Identifier: BSD-3-Clause
//
// Operations whose ranks meet on the node segment of their node first: over the node segment, or, when they have met and
// nothing has happened, by messages.
//
//     return on_node(executor, bcast_directly(...), [=](plan::CollPlan plan) { return by_messages(...); });
#pragma once

#include "coll/node/exchange.hpp"
#include "coll/node/reduce.hpp"

namespace gantry::coll {

// `by_messages` makes the task of the other way, by the plan that the ranks have come to.
template <class ByMessages>
Task<Status> on_node(Executor&, Task<Result<plan::CollPlan>> handshake, ByMessages by_messages) {
    Result<plan::CollPlan> met = co_await std::move(handshake);
    if (!met.ok()) co_return std::move(met).status();
    if (goes_over_node_segment(met->algorithm)) co_return success();
    Task<Status> other_way = by_messages(*met);
    Status done = co_await std::move(other_way);
    co_return done;
}

// A reduction, whose ranks meet where its plan says so. The handshake learns where the vectors lie: the reducer
// that `by_messages` gets knows that.
using ReduceByMessages = Task<Status> (*)(Executor&, Team, ReductionCall, plan::CollPlan);
Task<Status> reduce_on_node(Executor& executor, Team team, plan::Collective operation,
                            ReductionCall call, ReduceByMessages by_messages);

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
#include "coll/on_node.hpp"

#include "coll/reduce.hpp"

namespace gantry::coll {
namespace {

Task<Status> meet_and_reduce(Executor& executor, Team team, ReductionCall call,
                             plan::CallQuestion question, ReduceByMessages by_messages) {
    Result<plan::CollPlan> met = co_await reduce_directly(executor, team, &call, question);
    if (!met.ok()) co_return std::move(met).status();
    if (goes_over_node_segment(met->algorithm)) co_return success();
    Task<Status> other_way = by_messages(executor, team, std::move(call), *met);
    Status done = co_await std::move(other_way);
    co_return done;
}

}  // namespace

Task<Status> reduce_on_node(Executor& executor, Team team, plan::Collective operation,
                            ReductionCall call, ReduceByMessages by_messages) {
    const plan::CallQuestion question = question_of(operation, call.source, call.reducer);
    const plan::CollPlan plan = plan_of(team, question, call.source);
    if (plan.meet) return meet_and_reduce(executor, team, std::move(call), question, by_messages);
    return by_messages(executor, team, std::move(call), plan);
}

}  // namespace gantry::coll

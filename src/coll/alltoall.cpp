// SPDX-License-Identifier: BSD-3-Clause
//
// Of the v and w forms all ranks know only how many they are.
#include "coll/alltoall.hpp"

#include "coll/direct_exchange.hpp"
#include "coll/gather.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {
namespace {

plan::CollQuestion question_of(const Blocks& blocks, bool in_place) {
    plan::CollQuestion question{.operation = plan::Collective::alltoallv};
    question.in_place = in_place;
    if (!blocks.counts.empty() || blocks.layout == nullptr) return question;
    question.operation = plan::Collective::alltoall;
    question.bytes = blocks.count * blocks.layout->size;
    return question;
}

Task<Status> by_messages(Executor& executor, Team team, Blocks outgoing, Blocks incoming,
                         plan::CollPlan plan) {
    Task<Status> way;
    switch (plan.algorithm) {
        case plan::Algorithm::bruck:
            way = alltoall_bruck(executor, team, std::move(outgoing), std::move(incoming));
            break;
        case plan::Algorithm::pairwise:
            way = alltoall_pairwise(executor, team, std::move(outgoing), std::move(incoming));
            break;
        default:
            way = alltoall_spread(executor, team, std::move(outgoing), std::move(incoming),
                                  plan.outstanding);
            break;
    }
    Status done = co_await std::move(way);
    co_return done;
}

Task<Status> on_node(Executor& executor, Team team, Blocks outgoing, Blocks incoming,
                     plan::CollQuestion question) {
    Result<plan::CollPlan> met =
        co_await alltoall_directly(executor, team, outgoing, incoming, question);
    if (!met.ok()) co_return std::move(met).status();
    if (is_on_board(met->algorithm)) co_return success();
    Status done =
        co_await by_messages(executor, team, std::move(outgoing), std::move(incoming), *met);
    co_return done;
}

}  // namespace

Task<Status> alltoall(Executor& executor, Team team, Blocks outgoing, Blocks incoming) {
    const plan::CollQuestion question = question_of(incoming, false);
    const plan::CollPlan plan = plan_of(team, question);
    if (plan.meet)
        return on_node(executor, team, std::move(outgoing), std::move(incoming), question);
    return by_messages(executor, team, std::move(outgoing), std::move(incoming), plan);
}

Task<Status> alltoall_in_place(Executor& executor, Team team, Blocks all) {
    plan_of(team, question_of(all, true));
    return alltoall_swapping(executor, team, std::move(all));
}

}  // namespace gantry::coll

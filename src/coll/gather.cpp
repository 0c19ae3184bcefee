// SPDX-License-Identifier: BSD-3-Clause
//
// The root knows its blocks, the others theirs: of equal ones both know the bytes; of the v forms only
// the number of ranks is common.
#include "coll/gather.hpp"

#include "coll/gather_algorithms.hpp"
#include "coll/on_node.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {
namespace {

plan::CallQuestion question_of(const Team& team, const p2p::Buffer& mine, const Blocks& all,
                               int root, bool equal, plan::Collective of_equal,
                               plan::Collective of_listed) {
    plan::CallQuestion question{.operation = equal ? of_equal : of_listed};
    if (equal) question.bytes = team.rank() == root ? all.count * all.layout->size : mine.bytes();
    return question;
}

Task<Status> gather_by_messages(Executor& executor, Team team, p2p::Buffer mine, Blocks all,
                                int root, bool in_place, plan::CollPlan plan) {
    if (plan.algorithm == plan::Algorithm::binomial)
        return gather_binomial(executor, team, mine, std::move(all), root, in_place);
    return gather_linear(executor, team, mine, std::move(all), root, in_place);
}

Task<Status> scatter_by_messages(Executor& executor, Team team, Blocks all, p2p::Buffer mine,
                                 int root, bool in_place, plan::CollPlan plan) {
    if (plan.algorithm == plan::Algorithm::binomial)
        return scatter_binomial(executor, team, std::move(all), mine, root, in_place);
    return scatter_linear(executor, team, std::move(all), mine, root, in_place);
}

}  // namespace

Task<Status> gather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                    bool in_place, BlockSizes sizes) {
    const plan::CallQuestion question =
        question_of(team, mine, all, root, sizes == BlockSizes::equal, plan::Collective::gather,
                    plan::Collective::gatherv);
    const plan::CollPlan plan = plan_of(team, question);
    if (plan.meet)
        return on_node(
            executor, gather_directly(executor, team, mine, all, root, in_place, question),
            [&executor, team, mine, all, root, in_place](plan::CollPlan other) {
                return gather_by_messages(executor, team, mine, all, root, in_place, other);
            });
    return gather_by_messages(executor, team, mine, std::move(all), root, in_place, plan);
}

Task<Status> scatter(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                     bool in_place, BlockSizes sizes) {
    const plan::CallQuestion question =
        question_of(team, mine, all, root, sizes == BlockSizes::equal, plan::Collective::scatter,
                    plan::Collective::scatterv);
    const plan::CollPlan plan = plan_of(team, question);
    if (plan.meet)
        return on_node(
            executor, scatter_directly(executor, team, all, mine, root, in_place, question),
            [&executor, team, all, mine, root, in_place](plan::CollPlan other) {
                return scatter_by_messages(executor, team, all, mine, root, in_place, other);
            });
    return scatter_by_messages(executor, team, std::move(all), mine, root, in_place, plan);
}

}  // namespace gantry::coll

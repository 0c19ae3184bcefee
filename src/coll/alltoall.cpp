// SPDX-License-Identifier: BSD-3-Clause
//
// Of the v and w forms all ranks know only how many they are.
#include "coll/alltoall.hpp"

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

}  // namespace

Task<Status> alltoall(Executor& executor, Team team, Blocks outgoing, Blocks incoming) {
    const plan::CollPlan plan = plan_of(team, question_of(incoming, false));
    switch (plan.algorithm) {
        case plan::Algorithm::bruck:
            return alltoall_bruck(executor, team, std::move(outgoing), std::move(incoming));
        case plan::Algorithm::pairwise:
            return alltoall_pairwise(executor, team, std::move(outgoing), std::move(incoming));
        default:
            return alltoall_spread(executor, team, std::move(outgoing), std::move(incoming),
                                   plan.outstanding);
    }
}

Task<Status> alltoall_in_place(Executor& executor, Team team, Blocks all) {
    plan_of(team, question_of(all, true));
    return alltoall_swapping(executor, team, std::move(all));
}

}  // namespace gantry::coll

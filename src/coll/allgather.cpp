// SPDX-License-Identifier: BSD-3-Clause
//
// Equal blocks have several ways. Blocks with counts go around the ring, or all at once: what every
// rank knows is what they are together.
#include "coll/allgather_algorithms.hpp"
#include "coll/gather.hpp"
#include "coll/hierarchical.hpp"
#include "coll/host_image.hpp"
#include "coll/on_node.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {
namespace {

plan::CallQuestion question_of(const Blocks& all) {
    if (all.counts.empty())
        return {.operation = plan::Collective::allgather, .bytes = all.count * all.layout->size};
    Bytes together = 0;
    for (std::int64_t count : all.counts)
        together += static_cast<Bytes>(count) * all.layout->size;
    return {.operation = plan::Collective::allgatherv, .bytes = together};
}

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer mine, Blocks all, bool in_place,
                         plan::CollPlan plan) {
    Run run(team);
    if (in_place) mine = all.of(team.rank());
    if (plan.algorithm == plan::Algorithm::bruck) {
        Status done = co_await allgather_bruck(executor, run, mine, std::move(all));
        co_return done;
    }
    if (!in_place) {
        Status placed = co_await copy(executor, team, mine, all.of(team.rank()));
        run.note(std::move(placed));
    }
    Task<Status> rest;
    switch (plan.algorithm) {
        case plan::Algorithm::recursive_doubling:
            rest = allgather_doubling(executor, run, std::move(all));
            break;
        case plan::Algorithm::spread: rest = allgather_spread(executor, run, std::move(all)); break;
        case plan::Algorithm::hierarchical:
            rest = allgather_hierarchical(executor, run, std::move(all));
            break;
        default: rest = allgather_ring(executor, run, std::move(all)); break;
    }
    Status done = co_await std::move(rest);
    co_return done;
}

}  // namespace

Task<Status> allgather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, bool in_place) {
    const plan::CallQuestion question = question_of(all);
    const plan::CollPlan plan = plan_of(team, question);
    if (plan.meet)
        return on_node(executor, allgather_directly(executor, team, mine, all, in_place, question),
                       [&executor, team, mine, all, in_place](plan::CollPlan other) {
                           return by_messages(executor, team, mine, all, in_place, other);
                       });
    return by_messages(executor, team, mine, std::move(all), in_place, plan);
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Equal blocks have several ways. Blocks with counts go around the ring, or all at once: what every
// rank knows is what they are together.
#include "coll/allgather_algorithms.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/gather.hpp"
#include "coll/hierarchical.hpp"
#include "coll/host_image.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {
namespace {

plan::CollPlan plan_for(const Team& team, const Blocks& all) {
    if (all.counts.empty())
        return plan_of(team, {.operation = plan::Collective::allgather,
                              .bytes = all.count * all.layout->size});
    Bytes together = 0;
    for (std::int64_t count : all.counts)
        together += static_cast<Bytes>(count) * all.layout->size;
    return plan_of(team, {.operation = plan::Collective::allgatherv, .bytes = together});
}

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer mine, Blocks all,
                         bool in_place) {
    Run run(team);
    const plan::CollPlan plan = plan_for(team, all);
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
    if (is_fixed(team,
                 all.counts.empty() ? plan::Collective::allgather : plan::Collective::allgatherv))
        return by_messages(executor, team, mine, std::move(all), in_place);
    return directly_or(executor, allgather_directly(executor, team, mine, all, in_place),
                       by_messages(executor, team, mine, all, in_place));
}

}  // namespace gantry::coll

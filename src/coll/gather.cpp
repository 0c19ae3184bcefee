// SPDX-License-Identifier: BSD-3-Clause
//
// The root knows its blocks, the others theirs: of equal ones both know the bytes; of the v forms only
// the number of ranks is common.
#include "coll/gather.hpp"

#include "coll/direct_exchange.hpp"
#include "coll/gather_algorithms.hpp"
#include "coll/planner.hpp"

namespace gantry::coll {
namespace {

plan::Algorithm choose(const Team& team, const p2p::Buffer& mine, const Blocks& all, int root,
                       bool equal, plan::Collective of_equal, plan::Collective of_listed) {
    plan::CollQuestion question{.operation = equal ? of_equal : of_listed};
    if (equal) question.bytes = team.rank() == root ? all.count * all.layout->size : mine.bytes();
    return plan_of(team, question).algorithm;
}

Task<Status> gather_by_messages(Executor& executor, Team team, p2p::Buffer mine, Blocks all,
                                int root, bool in_place, BlockSizes sizes) {
    const plan::Algorithm algorithm = choose(team, mine, all, root, sizes == BlockSizes::equal,
                                             plan::Collective::gather, plan::Collective::gatherv);
    Task<Status> way;
    if (algorithm == plan::Algorithm::binomial)
        way = gather_binomial(executor, team, mine, std::move(all), root, in_place);
    else
        way = gather_linear(executor, team, mine, std::move(all), root, in_place);
    Status done = co_await std::move(way);
    co_return done;
}

Task<Status> scatter_by_messages(Executor& executor, Team team, Blocks all, p2p::Buffer mine,
                                 int root, bool in_place, BlockSizes sizes) {
    const plan::Algorithm algorithm = choose(team, mine, all, root, sizes == BlockSizes::equal,
                                             plan::Collective::scatter, plan::Collective::scatterv);
    Task<Status> way;
    if (algorithm == plan::Algorithm::binomial)
        way = scatter_binomial(executor, team, std::move(all), mine, root, in_place);
    else
        way = scatter_linear(executor, team, std::move(all), mine, root, in_place);
    Status done = co_await std::move(way);
    co_return done;
}

}  // namespace

Task<Status> gather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, int root,
                    bool in_place, BlockSizes sizes) {
    if (is_fixed(team,
                 sizes == BlockSizes::equal ? plan::Collective::gather : plan::Collective::gatherv))
        return gather_by_messages(executor, team, mine, std::move(all), root, in_place, sizes);
    return directly_or(executor, gather_directly(executor, team, mine, all, root, in_place),
                       gather_by_messages(executor, team, mine, all, root, in_place, sizes));
}

Task<Status> scatter(Executor& executor, Team team, Blocks all, p2p::Buffer mine, int root,
                     bool in_place, BlockSizes sizes) {
    if (is_fixed(team, sizes == BlockSizes::equal ? plan::Collective::scatter
                                                  : plan::Collective::scatterv))
        return scatter_by_messages(executor, team, std::move(all), mine, root, in_place, sizes);
    return directly_or(executor, scatter_directly(executor, team, all, mine, root, in_place),
                       scatter_by_messages(executor, team, all, mine, root, in_place, sizes));
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Operations as exchanges inside a node: who has a block for whom.
#include "coll/node/exchange.hpp"

namespace gantry::coll {

namespace {

std::size_t at(int rank) {
    return static_cast<std::size_t>(rank);
}

}  // namespace

Task<Result<plan::CollPlan>> alltoall_directly(Executor& executor, Team team, Blocks outgoing,
                                               Blocks incoming, plan::CallQuestion question) {
    Traffic traffic(team.size());
    for (int each = 0; each < team.size(); ++each) {
        traffic.outgoing[at(each)] = outgoing.of(each);
        traffic.incoming[at(each)] = incoming.of(each);
    }
    return exchange_directly(executor, team, std::move(traffic), question);
}

Task<Result<plan::CollPlan>> allgather_directly(Executor& executor, Team team, p2p::Buffer mine,
                                                Blocks all, bool in_place,
                                                plan::CallQuestion question) {
    const int me = team.rank();
    Traffic traffic(team.size());
    const p2p::Buffer own = in_place ? all.of(me) : mine;
    for (int each = 0; each < team.size(); ++each) {
        if (each == me && in_place) continue;
        traffic.outgoing[at(each)] = own;
        traffic.incoming[at(each)] = all.of(each);
    }
    return exchange_directly(executor, team, std::move(traffic), question);
}

Task<Result<plan::CollPlan>> bcast_directly(Executor& executor, Team team, p2p::Buffer buffer,
                                            int root, plan::CallQuestion question) {
    const bool sends = team.rank() == root;
    Traffic traffic(team.size());
    traffic.only_sender = root;
    if (!sends) traffic.incoming[at(root)] = buffer;
    for (int each = 0; sends && each < team.size(); ++each)
        if (each != root) traffic.outgoing[at(each)] = buffer;
    return exchange_directly(executor, team, std::move(traffic), question);
}

Task<Result<plan::CollPlan>> gather_directly(Executor& executor, Team team, p2p::Buffer mine,
                                             Blocks all, int root, bool in_place,
                                             plan::CallQuestion question) {
    const bool receives = team.rank() == root;
    Traffic traffic(team.size());
    traffic.only_receiver = root;
    if (!receives || !in_place) traffic.outgoing[at(root)] = mine;
    for (int each = 0; receives && each < team.size(); ++each)
        if (each != root || !in_place) traffic.incoming[at(each)] = all.of(each);
    return exchange_directly(executor, team, std::move(traffic), question);
}

Task<Result<plan::CollPlan>> scatter_directly(Executor& executor, Team team, Blocks all,
                                              p2p::Buffer mine, int root, bool in_place,
                                              plan::CallQuestion question) {
    const bool sends = team.rank() == root;
    Traffic traffic(team.size());
    traffic.only_sender = root;
    if (!sends || !in_place) traffic.incoming[at(root)] = mine;
    for (int each = 0; sends && each < team.size(); ++each)
        if (each != root || !in_place) traffic.outgoing[at(each)] = all.of(each);
    return exchange_directly(executor, team, std::move(traffic), question);
}

}  // namespace gantry::coll

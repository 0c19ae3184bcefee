// SPDX-License-Identifier: BSD-3-Clause
#include "coll/scan.hpp"

#include "coll/direct_exchange.hpp"
#include "coll/direct_reduce.hpp"
#include "coll/planner.hpp"
#include "coll/reduce.hpp"
#include "coll/scan_algorithms.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

namespace {

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                         Reducer reducer, bool exclusive) {
    reducer = placed(team, source, sink, reducer);
    const plan::CollPlan plan = plan_of(team, question_of(plan::Collective::scan, source, reducer));
    const Scan kind = exclusive ? Scan::exclusive : Scan::inclusive;
    Task<Status> way;
    if (plan.algorithm == plan::Algorithm::chain)
        way = scan_chain(executor, team, source, sink, reducer, kind, plan.segment);
    else
        way = scan_doubling(executor, team, source, sink, reducer, kind);
    Status done = co_await std::move(way);
    co_return done;
}

}  // namespace

Task<Status> scan(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                  Reducer reducer, bool exclusive) {
    if (is_fixed(team, plan::Collective::scan))
        return by_messages(executor, team, source, sink, reducer, exclusive);
    const Share share = exclusive ? Share::before : Share::up_to;
    return directly_or(
        executor, reduce_directly(executor, team, DirectReduction(source, sink, reducer, share)),
        by_messages(executor, team, source, sink, reducer, exclusive));
}

}  // namespace gantry::coll

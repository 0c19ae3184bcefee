// SPDX-License-Identifier: BSD-3-Clause
#include "coll/scan.hpp"

#include "coll/on_node.hpp"
#include "coll/planner.hpp"
#include "coll/reduce.hpp"
#include "coll/scan_algorithms.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

namespace {

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                         Reducer reducer, bool exclusive, plan::CollPlan plan) {
    reducer = placed(team, source, sink, reducer);
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
    const plan::CollQuestion question = question_of(plan::Collective::scan, source, reducer);
    const plan::CollPlan plan = plan_of(team, question);
    if (plan.meet)
        return reduce_on_node(
            executor, team,
            DirectReduction(source, sink, reducer, exclusive ? Share::before : Share::up_to),
            question,
            [&executor, team, source, sink, exclusive](Reducer how, plan::CollPlan other) {
                return by_messages(executor, team, source, sink, how, exclusive, other);
            });
    return by_messages(executor, team, source, sink, reducer, exclusive, plan);
}

}  // namespace gantry::coll

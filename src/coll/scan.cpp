// SPDX-License-Identifier: BSD-3-Clause
#include "coll/scan.hpp"

#include "coll/on_node.hpp"
#include "coll/planner.hpp"
#include "coll/reduce.hpp"
#include "coll/scan_algorithms.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

namespace {

Task<Status> by_messages(Executor& executor, Team team, ReductionCall call, plan::CollPlan plan) {
    const p2p::Buffer source = call.source, sink = call.sink;
    const Reducer reducer = placed(team, source, sink, call.reducer);
    const Scan kind = call.share == Share::before ? Scan::exclusive : Scan::inclusive;
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
    const Share share = exclusive ? Share::before : Share::up_to;
    return reduce_on_node(executor, team, plan::Collective::scan,
                          ReductionCall(source, sink, reducer, share), by_messages);
}

}  // namespace gantry::coll

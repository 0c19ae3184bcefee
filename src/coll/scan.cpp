// SPDX-License-Identifier: BSD-3-Clause
#include "coll/scan.hpp"

#include "coll/planner.hpp"
#include "coll/reduce.hpp"
#include "coll/scan_algorithms.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

Task<Status> scan(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                  Reducer reducer, bool exclusive) {
    reducer = placed(team, source, sink, reducer);
    const plan::CollPlan plan = plan_of(team, question_of(plan::Collective::scan, source, reducer));
    const Scan kind = exclusive ? Scan::exclusive : Scan::inclusive;
    if (plan.algorithm == plan::Algorithm::chain)
        return scan_chain(executor, team, source, sink, reducer, kind, plan.segment);
    return scan_doubling(executor, team, source, sink, reducer, kind);
}

}  // namespace gantry::coll

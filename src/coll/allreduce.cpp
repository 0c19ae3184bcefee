// SPDX-License-Identifier: BSD-3-Clause
//
// All ways but two work in one vector where the reducer works: the receive buffer where it lies
// there, else a copy. Those in shares and in rank order read the send buffer wherever it lies.
#include "coll/allreduce.hpp"

#include "coll/allreduce_algorithms.hpp"
#include "coll/hierarchical.hpp"
#include "coll/on_node.hpp"
#include "coll/planner.hpp"
#include "coll/reduce.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {
namespace {

Task<Status> in_vector(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer vector,
                       Reducer reducer, plan::Algorithm algorithm) {
    switch (algorithm) {
        case plan::Algorithm::pairwise:
            return allreduce_in_shares(executor, run, source, vector, reducer, combine_pairwise);
        case plan::Algorithm::ordered:
            return allreduce_in_shares(executor, run, source, vector, reducer, combine_ordered);
        case plan::Algorithm::fold: return fold(executor, run, source, vector, reducer, kEverybody);
        case plan::Algorithm::ring: return allreduce_ring(executor, run, vector, reducer);
        case plan::Algorithm::rabenseifner:
            return allreduce_rabenseifner(executor, run, vector, reducer);
        default: return allreduce_doubling(executor, run, vector, reducer);
    }
}

bool starts_from_copy(plan::Algorithm algorithm) {
    return algorithm == plan::Algorithm::ring || algorithm == plan::Algorithm::rabenseifner ||
           algorithm == plan::Algorithm::recursive_doubling;
}

Task<Status> by_messages(Executor& executor, Team team, ReductionCall call, plan::CollPlan plan) {
    const p2p::Buffer source = call.source, sink = call.sink;
    Reducer& reducer = call.reducer;
    Run run(team);
    if (plan.algorithm == plan::Algorithm::hierarchical) {
        Status done =
            co_await allreduce_hierarchical(executor, run, source, sink, reducer, plan.leaders);
        co_return done;
    }
    reducer = placed(team, source, sink, reducer);
    Image vector;
    Status ready;
    const bool in_sink = works_in(team, sink, reducer);
    if (in_sink)
        vector.borrow(sink);
    else
        ready = vector.allocate(team, source.count, *source.layout, reducer);
    GANTRY_CO_TRY(ready);
    if (starts_from_copy(plan.algorithm)) {
        Status loaded = co_await copy(executor, team, source, vector.buffer());
        run.note(std::move(loaded));
    }
    Status reduced =
        co_await in_vector(executor, run, source, vector.buffer(), reducer, plan.algorithm);
    if (in_sink || run.failed()) co_return run.status();
    Status stored = co_await copy(executor, team, vector.buffer(), sink);
    co_return stored;
}

}  // namespace

Task<Status> allreduce(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                       Reducer reducer) {
    return reduce_on_node(executor, team, plan::Collective::allreduce,
                          ReductionCall(source, sink, reducer, Share::all), by_messages);
}

}  // namespace gantry::coll

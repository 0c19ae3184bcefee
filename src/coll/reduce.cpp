// SPDX-License-Identifier: BSD-3-Clause
#include "coll/reduce.hpp"

#include "coll/hierarchical.hpp"
#include "coll/on_node.hpp"
#include "coll/planner.hpp"
#include "coll/reduce_algorithms.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

plan::CallQuestion question_of(plan::Collective operation, const p2p::Buffer& vector,
                               const Reducer& reducer) {
    return {.operation = operation,
            .bytes = vector.bytes(),
            .count = vector.count,
            .commutative = reducer.commutative,
            .predefined = !reducer.calls_program()};
}

Task<Status> reduce_into(Executor& executor, Team team, p2p::Buffer source, Image* result,
                         Reducer reducer, int top) {
    Run run(team);
    if (team.rank() == top) {
        Status ready = result->allocate(team, source.count, *source.layout, reducer);
        GANTRY_CO_TRY(ready);
    }
    Status reduced =
        co_await reduce_binomial(executor, run, source, result->buffer(), reducer, top);
    co_return reduced;
}

namespace {

Task<Status> by_messages(Executor& executor, Team team, ReductionCall call, plan::CollPlan plan) {
    const p2p::Buffer source = call.source, sink = call.sink;
    Reducer& reducer = call.reducer;
    const int root = call.root;
    Run run(team);
    if (plan.algorithm == plan::Algorithm::hierarchical) {
        Status done =
            co_await reduce_hierarchical(executor, run, source, sink, reducer, root, plan.leaders);
        co_return done;
    }
    reducer = placed(team, source, sink, reducer);
    Task<Status> way;
    switch (plan.algorithm) {
        case plan::Algorithm::rabenseifner:
            way = reduce_rabenseifner(executor, run, source, sink, reducer, root);
            break;
        case plan::Algorithm::pairwise:
            way = reduce_in_shares(executor, run, source, sink, reducer, root, combine_pairwise);
            break;
        case plan::Algorithm::ordered:
            way = reduce_in_shares(executor, run, source, sink, reducer, root, combine_ordered);
            break;
        case plan::Algorithm::fold: way = fold(executor, run, source, sink, reducer, root); break;
        default: way = reduce_binomial(executor, run, source, sink, reducer, root); break;
    }
    Status reduced = co_await std::move(way);
    co_return reduced;
}

}  // namespace

Task<Status> reduce(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                    Reducer reducer, int root) {
    ReductionCall call(source, sink, reducer, Share::root);
    call.root = root;
    return reduce_on_node(executor, team, plan::Collective::reduce, std::move(call), by_messages);
}

}  // namespace gantry::coll

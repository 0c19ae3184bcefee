// SPDX-License-Identifier: BSD-3-Clause
//
// Every rank combines its own share; only short vectors of operations that do not commute are combined
// at one rank and dealt from there.
#include "coll/reduce_scatter.hpp"

#include "coll/combine_shares.hpp"
#include "coll/on_node.hpp"
#include "coll/planner.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_algorithms.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {
namespace {

Task<Status> by_one_rank(Executor& executor, Run& run, p2p::Buffer source, Blocks shares,
                         p2p::Buffer sink, Reducer reducer) {
    Image whole;
    if (run.rank() == 0) {
        Status ready = whole.allocate(run.team, source.count, *source.layout, reducer);
        GANTRY_CO_TRY(ready);
    }
    Status met = co_await reduce_binomial(executor, run, source, whole.buffer(), reducer, 0);
    if (run.rank() != 0) {
        if (sink.count > 0) met = co_await receive(executor, run, sink, 0);
        co_return run.status();
    }
    const Shares parts(shares.counts);
    InFlight sends(run);
    for (int rank = 1; rank < run.size(); ++rank) {
        const p2p::Buffer theirs = parts.of(whole.buffer(), rank);
        if (theirs.count > 0) sends.send(theirs, rank);
    }
    if (!run.failed()) {
        met = co_await copy(executor, run.team, parts.of(whole.buffer(), 0), sink);
        run.note(std::move(met));
    }
    met = co_await sends.all(executor);
    co_return run.status();
}

// Number j of a power of two of ranks works for itself and, in a pair, for the rank below.
Shares shares_of_numbers(const Shares& shares, const PowerOfTwo& place) {
    std::vector<std::int64_t> counts;
    for (int number = 0; number < place.size; ++number) {
        const std::uint64_t first = shares.start(place.first_rank_of(number)),
                            end = shares.start(place.rank_of(number) + 1);
        counts.push_back(static_cast<std::int64_t>(end - first));
    }
    return Shares(std::move(counts));
}

// Recursive halving in a copy of the vector.
//
//     steps log2 P (two more for P no power of two); bytes sent per rank n (P - 1) / P; memory: n
Task<Status> halving(Executor& executor, Run& run, p2p::Buffer source, Shares shares,
                     p2p::Buffer sink, Reducer reducer) {
    Image vector;
    Status met = vector.allocate(run.team, source.count, *source.layout, reducer);
    GANTRY_CO_TRY(met);
    met = co_await copy(executor, run.team, source, vector.buffer());
    run.note(std::move(met));
    const PowerOfTwo place(run.rank(), run.size());
    met = co_await fold_pairs(executor, run, vector.buffer(), place, reducer);
    if (place.works())
        met = co_await combine_halving(executor, run, vector.buffer(),
                                       shares_of_numbers(shares, place), place, reducer);
    const p2p::Buffer mine = shares.of(vector.buffer(), run.rank());
    if (!place.works()) {
        if (mine.count == 0) co_return run.status();
        met = co_await receive(executor, run, sink, run.rank() + 1);
        co_return met;
    }
    if (place.in_pair()) {
        const p2p::Buffer below = shares.of(vector.buffer(), run.rank() - 1);
        if (below.count > 0) met = co_await send(executor, run, below, run.rank() - 1);
    }
    if (run.failed()) co_return run.status();
    met = co_await copy(executor, run.team, mine, sink);
    co_return met;
}

// What is combined lies where the reducer works, and not where the vector is still to be read.
Task<Status> into_own(Executor& executor, Run& run, p2p::Buffer source, Shares shares,
                      p2p::Buffer sink, Reducer reducer, CombineShares combining) {
    Image mine;
    Status met;
    if (sink.address != source.address && works_in(run.team, sink, reducer))
        mine.borrow(sink);
    else
        met = mine.allocate(run.team, sink.count, *source.layout, reducer);
    GANTRY_CO_TRY(met);
    met = co_await combining(executor, run, source, shares, mine.buffer(), reducer);
    GANTRY_CO_TRY(met);
    met = co_await copy(executor, run.team, mine.buffer(), sink);
    co_return met;
}

Task<Status> by_messages(Executor& executor, Team team, ReductionCall call, plan::CollPlan plan) {
    const p2p::Buffer source = call.source, sink = call.sink;
    Blocks& blocks = call.parts;
    const Reducer reducer = placed(team, source, sink, call.reducer);
    Run run(team);
    Task<Status> way;
    switch (plan.algorithm) {
        case plan::Algorithm::recursive_halving:
            way = halving(executor, run, source, Shares(blocks.counts), sink, reducer);
            break;
        case plan::Algorithm::binomial:
            way = by_one_rank(executor, run, source, std::move(blocks), sink, reducer);
            break;
        case plan::Algorithm::ordered:
            way = into_own(executor, run, source, Shares(blocks.counts), sink, reducer,
                           combine_ordered);
            break;
        default:
            way = into_own(executor, run, source, Shares(blocks.counts), sink, reducer,
                           combine_pairwise);
            break;
    }
    Status reduced = co_await std::move(way);
    co_return reduced;
}

}  // namespace

Task<Status> reduce_scatter(Executor& executor, Team team, p2p::Buffer source, Blocks blocks,
                            p2p::Buffer sink, Reducer reducer) {
    ReductionCall call(source, sink, reducer, Share::part);
    call.parts = std::move(blocks);
    return reduce_on_node(executor, team, plan::Collective::reduce_scatter, std::move(call),
                          by_messages);
}

}  // namespace gantry::coll

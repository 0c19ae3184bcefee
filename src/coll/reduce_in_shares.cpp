// SPDX-License-Identifier: BSD-3-Clause
//
// Each rank combines a share, in rank order, then sends it to the root.
//
//     steps as its first half has, and one more; bytes sent per rank n; memory: a share and pieces
#include "coll/reduce_algorithms.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

Task<Status> reduce_in_shares(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                              Reducer reducer, int root, CombineShares combining) {
    const Shares shares(source.count, run.size());
    const bool at_root = run.rank() == root;
    Image mine;
    Status ready;
    const bool in_sink = at_root && works_in(run.team, sink, reducer);
    if (in_sink && sink.address != source.address)
        mine.borrow(shares.of(sink, root));
    else
        ready = mine.allocate(run.team, shares.count_of(run.rank()), *source.layout, reducer);
    GANTRY_CO_TRY(ready);
    Status met = co_await combining(executor, run, source, shares, mine.buffer(), reducer);
    if (!at_root) {
        if (mine.buffer().count == 0) co_return run.status();
        met = co_await send(executor, run, mine.buffer(), root);
        co_return met;
    }
    if (!run.failed()) {
        met = co_await copy(executor, run.team, mine.buffer(), shares.of(sink, root));
        run.note(std::move(met));
    }
    met = co_await gather_shares_at(executor, run, sink, shares, root);
    co_return met;
}

}  // namespace gantry::coll

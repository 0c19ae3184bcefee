// SPDX-License-Identifier: BSD-3-Clause
//
// Rabenseifner: recursive halving, then every rank sends its share to the root.
//
//     steps log2 P + 1 (one more for P no power of two); bytes sent per rank n; memory: n (none at a
//     root in host memory)
#include "coll/reduce_algorithms.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

Task<Status> reduce_rabenseifner(Executor& executor, Run& run, p2p::Buffer source, p2p::Buffer sink,
                                 Reducer reducer, int root) {
    const bool at_root = run.rank() == root;
    const bool in_sink = at_root && works_in(run.team, sink, reducer);
    Image vector;
    Status ready;
    if (in_sink)
        vector.borrow(sink);
    else
        ready = vector.allocate(run.team, source.count, *source.layout, reducer);
    GANTRY_CO_TRY(ready);
    Status loaded = co_await copy(executor, run.team, source, vector.buffer());
    run.note(std::move(loaded));
    const PowerOfTwo place(run.rank(), run.size());
    const Shares shares(source.count, place.size);
    Status met = co_await fold_pairs(executor, run, vector.buffer(), place, reducer);
    if (place.works())
        met = co_await combine_halving(executor, run, vector.buffer(), shares, place, reducer);
    InFlight messages(run);
    for (int number = 0; number < place.size; ++number) {
        const p2p::Buffer share = shares.of(vector.buffer(), number);
        const int owner = place.rank_of(number);
        if (share.count == 0 || owner == root) continue;
        if (at_root) messages.receive(share, owner);
        if (owner == run.rank()) messages.send(share, root);
    }
    met = co_await messages.all(executor);
    if (!at_root || in_sink || run.failed()) co_return run.status();
    Status stored = co_await copy(executor, run.team, vector.buffer(), sink);
    co_return stored;
}

}  // namespace gantry::coll

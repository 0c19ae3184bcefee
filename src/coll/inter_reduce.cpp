// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions between two groups: each group reduces its vectors to its first rank, in rank order;
// the first ranks send the results across, and what arrived is passed on as the operation wants.
#include "coll/bcast.hpp"
#include "coll/exchange.hpp"
#include "coll/gather.hpp"
#include "coll/inter.hpp"
#include "coll/reduce.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {
Task<Status> inter_reduce(Executor& executor, Sides sides, p2p::Buffer source, p2p::Buffer sink,
                          Reducer reducer, int root) {
    if (root == MPI_PROC_NULL) co_return success();
    if (root == MPI_ROOT) {
        Status received = co_await receive(executor, sides.theirs, sink, 0);
        co_return received;
    }
    reducer = placed(sides.mine, source, source, reducer);
    Image result;
    FirstFailure failed;
    Status reduced = co_await reduce_into(executor, sides.mine, source, &result, reducer, 0);
    failed.note(std::move(reduced));
    if (sides.mine.rank() == 0) {
        Status sent = co_await send(executor, sides.theirs, result.buffer(), root);
        failed.note(std::move(sent));
    }
    co_return failed.status();
}

Task<Status> inter_allreduce(Executor& executor, Sides sides, p2p::Buffer source, p2p::Buffer sink,
                             Reducer reducer) {
    reducer = placed(sides.mine, source, sink, reducer);
    Image result;
    FirstFailure failed;
    Status reduced = co_await reduce_into(executor, sides.mine, source, &result, reducer, 0);
    failed.note(std::move(reduced));
    if (sides.mine.rank() == 0) {
        Status met = co_await exchange(executor, sides.theirs, result.buffer(), 0, sink, 0);
        failed.note(std::move(met));
    }
    Status told = co_await bcast(executor, sides.mine, sink, 0);
    failed.note(std::move(told));
    co_return failed.status();
}

Task<Status> inter_reduce_scatter(Executor& executor, Sides sides, p2p::Buffer source,
                                  Blocks shares, p2p::Buffer sink, Reducer reducer) {
    reducer = placed(sides.mine, source, sink, reducer);
    Image result, arrived;
    FirstFailure failed;
    Status reduced = co_await reduce_into(executor, sides.mine, source, &result, reducer, 0);
    failed.note(std::move(reduced));
    if (sides.mine.rank() == 0) {
        Status ready = arrived.allocate(sides.mine, source.count, *source.layout, reducer);
        GANTRY_CO_TRY(ready);
        Status met =
            co_await exchange(executor, sides.theirs, result.buffer(), 0, arrived.buffer(), 0);
        failed.note(std::move(met));
        shares.address = arrived.address();
    }
    Status scattered = co_await scatter(executor, sides.mine, shares, sink, 0, false);
    failed.note(std::move(scattered));
    co_return failed.status();
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Broadcast, gather, scatter and all-to-all between two groups. The root of a broadcast sends once,
// to the first rank of the other group, which broadcasts there. Blocks of the others go straight
// from their sender to their receiver.
#include "base/scope.hpp"
#include "coll/bcast.hpp"
#include "coll/exchange.hpp"
#include "coll/inter.hpp"

namespace gantry::coll {

Task<Status> inter_bcast(Executor& executor, Sides sides, p2p::Buffer buffer, int root) {
    if (root == MPI_PROC_NULL) co_return success();
    if (root == MPI_ROOT) {
        Status sent = co_await send(executor, sides.theirs, buffer, 0);
        co_return sent;
    }
    FirstFailure failed;
    if (sides.mine.rank() == 0) {
        Status received = co_await receive(executor, sides.theirs, buffer, root);
        failed.note(std::move(received));
    }
    Status told = co_await bcast(executor, sides.mine, buffer, 0);
    failed.note(std::move(told));
    co_return failed.status();
}

Task<Status> inter_gather(Executor& executor, Sides sides, p2p::Buffer mine, Blocks all, int root) {
    if (root == MPI_PROC_NULL) co_return success();
    if (root != MPI_ROOT) {
        Status sent = co_await send(executor, sides.theirs, mine, root);
        co_return sent;
    }
    Scope blocks(executor);
    for (int rank = 0; rank < sides.theirs.size(); ++rank)
        blocks.spawn(receive(executor, sides.theirs, all.of(rank), rank));
    Status gathered = co_await blocks.join(executor);
    co_return gathered;
}

Task<Status> inter_scatter(Executor& executor, Sides sides, Blocks all, p2p::Buffer mine,
                           int root) {
    if (root == MPI_PROC_NULL) co_return success();
    if (root != MPI_ROOT) {
        Status received = co_await receive(executor, sides.theirs, mine, root);
        co_return received;
    }
    Scope blocks(executor);
    for (int rank = 0; rank < sides.theirs.size(); ++rank)
        blocks.spawn(send(executor, sides.theirs, all.of(rank), rank));
    Status scattered = co_await blocks.join(executor);
    co_return scattered;
}

Task<Status> inter_alltoall(Executor& executor, Sides sides, Blocks outgoing, Blocks incoming) {
    const int number = sides.theirs.size(), first = sides.mine.rank();
    Scope blocks(executor);
    for (int step = 0; step < number; ++step) {
        const int from = (first + step) % number;
        blocks.spawn(receive(executor, sides.theirs, incoming.of(from), from));
    }
    // Every rank starts with another partner.
    for (int step = 0; step < number; ++step) {
        const int to = (first + step) % number;
        blocks.spawn(send(executor, sides.theirs, outgoing.of(to), to));
    }
    Status met = co_await blocks.join(executor);
    co_return met;
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Every rank has its share of a vector, and gets those of all others: the second half of long
// broadcasts and reductions. A power of two of ranks doubles what it has, others go around a ring.
//
//     steps log2 P, or P - 1; bytes sent per rank n (P - 1) / P; memory: none
#include "coll/shares.hpp"
#include "coll/staged_vector.hpp"

namespace gantry::coll {
namespace {

Task<Status> exchange_some(Executor& executor, Run& run, p2p::Buffer outgoing, int to,
                           p2p::Buffer incoming, int from) {
    InFlight messages(run);
    if (incoming.count > 0) messages.receive(incoming, from);
    if (outgoing.count > 0) messages.send(outgoing, to);
    Status met = co_await messages.all(executor);
    co_return met;
}

void tell(StagedVector* staged, const Run& run, const Shares& shares, int first, int end) {
    if (staged != nullptr && !run.failed()) staged->came(shares.start(first), shares.start(end));
}

Task<Status> doubling(Executor& executor, Run& run, p2p::Buffer vector, Shares shares, int root,
                      StagedVector* staged) {
    const int size = run.size(), relative = (run.rank() - root + size) % size;
    for (int distance = 1; distance < size; distance *= 2) {
        const int partner = relative ^ distance, peer = (partner + root) % size;
        const int mine = relative & ~(distance - 1), theirs = partner & ~(distance - 1);
        Status met =
            co_await exchange_some(executor, run, shares.range(vector, mine, mine + distance), peer,
                                   shares.range(vector, theirs, theirs + distance), peer);
        tell(staged, run, shares, theirs, theirs + distance);
    }
    co_return run.status();
}

Task<Status> ring(Executor& executor, Run& run, p2p::Buffer vector, Shares shares, int root,
                  StagedVector* staged) {
    const int size = run.size(), relative = (run.rank() - root + size) % size;
    const int to = (run.rank() + 1) % size, from = (run.rank() - 1 + size) % size;
    for (int step = 0; step < size - 1; ++step) {
        Status met = co_await exchange_some(executor, run, shares.around(vector, relative - step),
                                            to, shares.around(vector, relative - step - 1), from);
        const int came = ((relative - step - 1) % size + size) % size;
        tell(staged, run, shares, came, came + 1);
    }
    co_return run.status();
}

}  // namespace

Task<Status> gather_shares(Executor& executor, Run& run, p2p::Buffer vector, Shares shares,
                           int root, StagedVector* staged) {
    const int size = run.size();
    if ((size & (size - 1)) == 0)
        return doubling(executor, run, vector, std::move(shares), root, staged);
    return ring(executor, run, vector, std::move(shares), root, staged);
}

Task<Status> gather_shares_at(Executor& executor, Run& run, p2p::Buffer vector, Shares shares,
                              int root) {
    if (run.rank() != root) {
        const p2p::Buffer mine = shares.of(vector, run.rank());
        if (mine.count == 0) co_return run.status();
        Status sent = co_await send(executor, run, mine, root);
        co_return sent;
    }
    InFlight receives(run);
    for (int rank = 0; rank < run.size(); ++rank) {
        const p2p::Buffer theirs = shares.of(vector, rank);
        if (rank != root && theirs.count > 0) receives.receive(theirs, rank);
    }
    Status gathered = co_await receives.all(executor);
    co_return gathered;
}

}  // namespace gantry::coll

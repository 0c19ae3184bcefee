// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather around a ring: in each step a rank passes on the block that it got in the step before.
// Every block crosses each link once.
#include "coll/direct_exchange.hpp"
#include "coll/exchange.hpp"
#include "coll/gather.hpp"

namespace gantry::coll {
namespace {

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer mine, Blocks all,
                         bool in_place) {
    const int size = team.size(), rank = team.rank();
    FirstFailure failed;
    if (!in_place) {
        Status placed = co_await copy_local(executor, team, mine, all.of(rank));
        failed.note(std::move(placed));
    }
    const int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    for (int step = 0; step < size - 1; ++step) {
        const p2p::Buffer outgoing = all.of((rank - step + size) % size);
        const p2p::Buffer incoming = all.of((rank - step - 1 + size) % size);
        Status met = co_await exchange(executor, team, outgoing, to, incoming, from);
        failed.note(std::move(met));
    }
    co_return failed.status();
}

}  // namespace

Task<Status> allgather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, bool in_place) {
    return directly_or(executor, allgather_directly(executor, team, mine, all, in_place),
                       by_messages(executor, team, mine, all, in_place));
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Allgather around a ring: in each step a rank passes on the block that it got in the step before.
// Every block crosses each link once.
#include "coll/direct_exchange.hpp"
#include "coll/exchange.hpp"
#include "coll/gather.hpp"

namespace gantry::coll {

Task<Status> allgather(Executor& executor, Team team, p2p::Buffer mine, Blocks all, bool in_place) {
    const int size = team.size(), rank = team.rank();
    if (may_exchange_directly(team)) {
        Traffic traffic(size);
        const p2p::Buffer own = in_place ? all.of(rank) : mine;
        for (int each = 0; each < size; ++each) {
            if (each == rank && in_place) continue;
            traffic.outgoing[static_cast<std::size_t>(each)] = own;
            traffic.incoming[static_cast<std::size_t>(each)] = all.of(each);
        }
        Result<bool> exchanged = co_await exchange_directly(executor, team, std::move(traffic));
        if (!exchanged.ok()) co_return std::move(exchanged).status();
        if (*exchanged) co_return success();
    }
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

}  // namespace gantry::coll

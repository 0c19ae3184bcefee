// SPDX-License-Identifier: BSD-3-Clause
//
// Binomial tree: ranks counted from the root, a rank hears from the one without its lowest set bit
// and then tells those below that bit, farthest first.
#include "coll/bcast.hpp"

#include "base/scope.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/exchange.hpp"

namespace gantry::coll {

Task<Status> bcast(Executor& executor, Team team, p2p::Buffer buffer, int root) {
    const int size = team.size();
    if (may_exchange_directly(team)) {
        Traffic traffic(size);
        traffic.only_sender = root;
        if (team.rank() != root) traffic.incoming[static_cast<std::size_t>(root)] = buffer;
        for (int each = 0; each < size; ++each)
            if (team.rank() == root && each != root)
                traffic.outgoing[static_cast<std::size_t>(each)] = buffer;
        Result<bool> exchanged = co_await exchange_directly(executor, team, std::move(traffic));
        if (!exchanged.ok()) co_return std::move(exchanged).status();
        if (*exchanged) co_return success();
    }
    const int relative = (team.rank() - root + size) % size;
    FirstFailure failed;
    int bit = 1;
    while (bit < size && (relative & bit) == 0)
        bit *= 2;
    if (relative != 0) {
        const int from = (relative - bit + root) % size;
        Status received = co_await receive(executor, team, buffer, from);
        failed.note(std::move(received));
    }
    Scope sends(executor);
    for (bit /= 2; bit > 0; bit /= 2) {
        if (relative + bit < size)
            sends.spawn(send(executor, team, buffer, (relative + bit + root) % size));
    }
    Status sent = co_await sends.join(executor);
    failed.note(std::move(sent));
    co_return failed.status();
}

}  // namespace gantry::coll

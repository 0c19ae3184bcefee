// SPDX-License-Identifier: BSD-3-Clause
//
// Binomial tree: ranks counted from the root, a rank hears from the one without its lowest set bit
// and then tells those below that bit, farthest first.
#include "coll/bcast.hpp"

#include "base/scope.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/exchange.hpp"

namespace gantry::coll {
namespace {

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer buffer, int root) {
    const int size = team.size();
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

}  // namespace

Task<Status> bcast(Executor& executor, Team team, p2p::Buffer buffer, int root) {
    return directly_or(executor, bcast_directly(executor, team, buffer, root),
                       by_messages(executor, team, buffer, root));
}

}  // namespace gantry::coll

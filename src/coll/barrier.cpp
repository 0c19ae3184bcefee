// SPDX-License-Identifier: BSD-3-Clause
//
// Dissemination barrier: in round k each rank tells the one 2^k above it and hears from the one 2^k
// below it; after ceil(log2 n) rounds it has heard, directly or not, from everybody.
#include "coll/barrier.hpp"

#include "coll/exchange.hpp"

namespace gantry::coll {

Task<Status> barrier(Executor& executor, Team team) {
    const int size = team.size();
    const p2p::Buffer nothing = bytes_buffer(nullptr, 0);
    FirstFailure failed;
    for (int distance = 1; distance < size; distance *= 2) {
        const int to = (team.rank() + distance) % size;
        const int from = (team.rank() - distance + size) % size;
        Status met = co_await exchange(executor, team, nothing, to, nothing, from);
        failed.note(std::move(met));
    }
    co_return failed.status();
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Binomial tree: ranks counted from the root, a rank hears from the one without its lowest set bit
// and then tells those below that bit, farthest first.
//
//     steps ceil(log2 P); bytes sent by the root n ceil(log2 P), by all n (P - 1); memory: none
#include "coll/bcast_algorithms.hpp"
#include "coll/exchange.hpp"

namespace gantry::coll {

Task<Status> bcast_binomial(Executor& executor, Team team, p2p::Buffer buffer, int root) {
    Run run(team);
    Status told = co_await bcast_binomial(executor, run, buffer, root);
    co_return told;
}

Task<Status> bcast_binomial(Executor& executor, Run& run, p2p::Buffer buffer, int root) {
    const int size = run.size();
    const int relative = (run.rank() - root + size) % size;
    int bit = 1;
    while (bit < size && (relative & bit) == 0)
        bit *= 2;
    if (relative != 0) {
        const int from = (relative - bit + root) % size;
        Status received = co_await receive(executor, run, buffer, from);
    }
    InFlight sends(run);
    for (bit /= 2; bit > 0; bit /= 2) {
        if (relative + bit < size) sends.send(buffer, (relative + bit + root) % size);
    }
    Status sent = co_await sends.all(executor);
    co_return run.status();
}

}  // namespace gantry::coll

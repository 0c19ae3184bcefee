// SPDX-License-Identifier: BSD-3-Clause
//
// Everybody sends its block to everybody at once.
//
//     steps 1; messages and bytes sent per rank P - 1 and n (P - 1); memory: none
#include "coll/allgather_algorithms.hpp"

namespace gantry::coll {

Task<Status> allgather_spread(Executor& executor, Run& run, Blocks all) {
    const int size = run.size(), rank = run.rank();
    InFlight messages(run);
    for (int step = 1; step < size; ++step) {
        const int from = (rank - step + size) % size;
        messages.receive(all.of(from), from);
    }
    const p2p::Buffer mine = all.of(rank);
    for (int step = 1; step < size; ++step)
        messages.send(mine, (rank + step) % size);
    Status done = co_await messages.all(executor);
    co_return done;
}

}  // namespace gantry::coll

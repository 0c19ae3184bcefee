// SPDX-License-Identifier: BSD-3-Clause
//
// Around a ring: in each step a rank passes on the block that it got in the step before. Every block
// crosses each link once.
//
//     steps P - 1; bytes sent per rank n (P - 1), n: one block; memory: none
#include "coll/allgather_algorithms.hpp"

namespace gantry::coll {

Task<Status> allgather_ring(Executor& executor, Run& run, Blocks all) {
    const int size = run.size(), rank = run.rank();
    const int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    for (int step = 0; step < size - 1; ++step) {
        const p2p::Buffer outgoing = all.of((rank - step + size) % size);
        const p2p::Buffer incoming = all.of((rank - step - 1 + size) % size);
        Status met = co_await exchange(executor, run, outgoing, to, incoming, from);
    }
    co_return run.status();
}

}  // namespace gantry::coll

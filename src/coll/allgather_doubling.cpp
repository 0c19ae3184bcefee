// SPDX-License-Identifier: BSD-3-Clause
//
// Recursive doubling, for a power of two of ranks: in round k pairs at distance 2^k swap the 2^k
// blocks that each has. Blocks that follow each other are one buffer.
//
//     steps log2 P; bytes sent per rank n (P - 1); memory: none
#include "coll/allgather_algorithms.hpp"

namespace gantry::coll {

Task<Status> allgather_doubling(Executor& executor, Run& run, Blocks all) {
    const auto blocks_from = [&](int first, int count) {
        p2p::Buffer blocks = all.of(first);
        blocks.count *= static_cast<std::uint64_t>(count);
        return blocks;
    };
    for (int distance = 1; distance < run.size(); distance *= 2) {
        const int partner = run.rank() ^ distance;
        const p2p::Buffer mine = blocks_from(run.rank() & ~(distance - 1), distance),
                          theirs = blocks_from(partner & ~(distance - 1), distance);
        Status met = co_await exchange(executor, run, mine, partner, theirs, partner);
    }
    co_return run.status();
}

}  // namespace gantry::coll

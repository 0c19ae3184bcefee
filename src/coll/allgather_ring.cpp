// SPDX-License-Identifier: BSD-3-Clause
//
// Around a ring: in each step a rank passes on the block that it got in the step before. Every block
// crosses each link once.
//
//     steps P - 1; bytes sent per rank n (P - 1), n: one block; memory: none (blocks of page-locked
//     memory where they are a GPU's, see relay.hpp)
#include "coll/allgather_algorithms.hpp"
#include "coll/relay.hpp"
#include "plan/coll_limits.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

// What is asked about the blocks that are passed on: all but this rank's and the last one.
Bytes longest_block(const Run& run, const Blocks& all) {
    if (run.size() < 3) return 0;
    Bytes longest = 0;
    for (int rank = 0; rank < run.size(); ++rank)
        longest = std::max(longest, all.of(rank).bytes());
    return longest <= plan::kRelayLimits.longest_block ? longest : 0;
}

}  // namespace

Task<Status> allgather_ring(Executor& executor, Run& run, Blocks all) {
    const int size = run.size(), rank = run.rank();
    const int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    Relay relay(executor, run.team, all.of(from), from, to, longest_block(run, all),
                plan::kRelayLimits.ring_slots);
    for (int step = 0; step < size - 1; ++step) {
        p2p::Buffer outgoing = all.of((rank - step + size) % size);
        const p2p::Buffer block = all.of((rank - step - 1 + size) % size);
        p2p::Buffer incoming = block;
        const auto number = static_cast<std::uint64_t>(step);
        if (relay.on()) {
            if (step > 0) outgoing = relay.slot(number - 1, outgoing.bytes());
            Status ready = co_await relay.ready(executor, number);
            run.note(std::move(ready));
            incoming = relay.slot(number, block.bytes());
        }
        Status met = co_await exchange(executor, run, outgoing, to, incoming, from);
        if (relay.on() && !run.failed()) relay.place(executor, number, block);
    }
    if (relay.on()) {
        Status placed = co_await relay.all(executor);
        run.note(std::move(placed));
    }
    co_return run.status();
}

}  // namespace gantry::coll

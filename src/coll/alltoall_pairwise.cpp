// SPDX-License-Identifier: BSD-3-Clause
//
// One partner after the other: in step s a rank sends to the one s above it and receives from the one
// s below it. In place, pairs of ranks swap their blocks one after another: in step s ranks whose sum
// is s (modulo P) meet, so everybody agrees on the order and nobody waits in a circle.
//
//     steps P - 1 (in place P); messages sent per rank P - 1; memory: none (in place one block)
#include "coll/alltoall.hpp"
#include "coll/host_image.hpp"

namespace gantry::coll {

Task<Status> alltoall_pairwise(Executor& executor, Team team, Blocks outgoing, Blocks incoming) {
    Run run(team);
    const int size = team.size(), rank = team.rank();
    Status placed = co_await copy(executor, team, outgoing.of(rank), incoming.of(rank));
    run.note(std::move(placed));
    for (int step = 1; step < size; ++step) {
        const int to = (rank + step) % size, from = (rank - step + size) % size;
        Status met = co_await exchange(executor, run, outgoing.of(to), to, incoming.of(from), from);
    }
    co_return run.status();
}

Task<Status> alltoall_swapping(Executor& executor, Team team, Blocks all) {
    Run run(team);
    const int size = team.size(), rank = team.rank();
    const layout::Layout& bytes = *transfer::bytes_buffer(nullptr, 0).layout;
    for (int step = 0; step < size; ++step) {
        const int partner = (step - rank + size) % size;
        if (partner == rank) continue;
        const p2p::Buffer block = all.of(partner);
        HostImage arrived;
        Status ready = arrived.allocate(team, block.bytes(), bytes);
        GANTRY_CO_TRY(ready);
        Status met = co_await exchange(executor, run, block, partner, arrived.buffer(), partner);
        if (run.failed()) continue;
        Status placed = co_await copy(executor, team, arrived.buffer(), block);
        run.note(std::move(placed));
    }
    co_return run.status();
}

}  // namespace gantry::coll

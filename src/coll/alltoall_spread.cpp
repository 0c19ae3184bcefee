// SPDX-License-Identifier: BSD-3-Clause
//
// Every block at once, starting with different partners on each rank, and at most so many messages to
// and from each rank in flight: the next one starts when the oldest has ended.
//
//     steps 1; messages sent per rank P - 1; memory: none
#include "coll/alltoall.hpp"

#include "coll/host_image.hpp"

namespace gantry::coll {

Task<Status> alltoall_spread(Executor& executor, Team team, Blocks outgoing, Blocks incoming,
                             int outstanding) {
    Run run(team);
    const int size = team.size(), rank = team.rank();
    const std::size_t most = outstanding > 0 ? 2 * static_cast<std::size_t>(outstanding)
                                             : 2 * static_cast<std::size_t>(size);
    InFlight messages(run);
    for (int step = 1; step < size; ++step) {
        while (messages.count() >= most) {
            Status ended = co_await messages.oldest(executor);
        }
        const int from = (rank - step + size) % size, to = (rank + step) % size;
        messages.receive(incoming.of(from), from);
        messages.send(outgoing.of(to), to);
    }
    Status placed = co_await copy(executor, team, outgoing.of(rank), incoming.of(rank));
    run.note(std::move(placed));
    Status done = co_await messages.all(executor);
    co_return run.status();
}

}  // namespace gantry::coll

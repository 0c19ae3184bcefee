// SPDX-License-Identifier: BSD-3-Clause
//
// Each rank sends its block to one rank of the other group: rank a to rank a modulo n, where n is
// the other group's size. There the blocks go around a ring of the group, all blocks that arrived
// at one rank together. So every block crosses between the groups once.
#include "base/scope.hpp"
#include "coll/exchange.hpp"
#include "coll/inter.hpp"

namespace gantry::coll {
namespace {

// All blocks that arrived at `owner` of this group.
void spawn_receives(Scope& scope, Executor& executor, const Sides& sides, const Blocks& all,
                    int owner, int from) {
    for (int block = owner; block < sides.theirs.size(); block += sides.mine.size())
        scope.spawn(receive(executor, sides.mine, all.of(block), from));
}
void spawn_sends(Scope& scope, Executor& executor, const Sides& sides, const Blocks& all, int owner,
                 int to) {
    for (int block = owner; block < sides.theirs.size(); block += sides.mine.size())
        scope.spawn(send(executor, sides.mine, all.of(block), to));
}

}  // namespace

Task<Status> inter_allgather(Executor& executor, Sides sides, p2p::Buffer mine, Blocks all) {
    const int size = sides.mine.size(), rank = sides.mine.rank();
    FirstFailure failed;
    {
        Scope crossing(executor);
        for (int block = rank; block < sides.theirs.size(); block += size)
            crossing.spawn(receive(executor, sides.theirs, all.of(block), block));
        crossing.spawn(send(executor, sides.theirs, mine, rank % sides.theirs.size()));
        Status crossed = co_await crossing.join(executor);
        failed.note(std::move(crossed));
    }
    const int to = (rank + 1) % size, from = (rank - 1 + size) % size;
    for (int step = 0; step < size - 1; ++step) {
        Scope around(executor);
        spawn_receives(around, executor, sides, all, (rank - step - 1 + size) % size, from);
        spawn_sends(around, executor, sides, all, (rank - step + size) % size, to);
        Status passed_on = co_await around.join(executor);
        failed.note(std::move(passed_on));
    }
    co_return failed.status();
}

}  // namespace gantry::coll

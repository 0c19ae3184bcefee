// SPDX-License-Identifier: BSD-3-Clause
//
// All-to-all: every block at once, starting with different partners on each rank. In place, pairs
// of ranks swap their blocks one after another: in step s ranks whose sum is s (modulo n) meet, so
// everybody agrees on the order and nobody waits in a circle.
#include "base/scope.hpp"
#include "coll/direct_exchange.hpp"
#include "coll/exchange.hpp"
#include "coll/gather.hpp"
#include "coll/host_image.hpp"

#include <memory>
#include <new>

namespace gantry::coll {
namespace {

Task<Status> by_messages(Executor& executor, Team team, Blocks outgoing, Blocks incoming) {
    const int size = team.size(), rank = team.rank();
    Scope blocks(executor);
    for (int step = 1; step < size; ++step) {
        const int from = (rank - step + size) % size;
        blocks.spawn(receive(executor, team, incoming.of(from), from));
    }
    for (int step = 1; step < size; ++step) {
        const int to = (rank + step) % size;
        blocks.spawn(send(executor, team, outgoing.of(to), to));
    }
    blocks.spawn(copy_local(executor, team, outgoing.of(rank), incoming.of(rank)));
    Status met = co_await blocks.join(executor);
    co_return met;
}

}  // namespace

Task<Status> alltoall(Executor& executor, Team team, Blocks outgoing, Blocks incoming) {
    return directly_or(executor, alltoall_directly(executor, team, outgoing, incoming),
                       by_messages(executor, team, outgoing, incoming));
}

Task<Status> alltoall_in_place(Executor& executor, Team team, Blocks all) {
    const int size = team.size(), rank = team.rank();
    for (int step = 0; step < size; ++step) {
        const int partner = (step - rank + size) % size;
        if (partner == rank) continue;
        const p2p::Buffer block = all.of(partner);
        const Bytes bytes = block.bytes();
        std::unique_ptr<std::byte[]> aside(new (std::nothrow) std::byte[bytes > 0 ? bytes : 1]);
        if (aside == nullptr)
            co_return failure(MPI_ERR_NO_MEM,
                              "out of memory for a block of {} bytes of an all-to-all in place",
                              bytes);
        const p2p::Buffer arrived = bytes_buffer(aside.get(), bytes);
        Status met = co_await exchange(executor, team, block, partner, arrived, partner);
        GANTRY_CO_TRY(met);
        Status placed = co_await copy_local(executor, team, arrived, block);
        GANTRY_CO_TRY(placed);
    }
    co_return success();
}

}  // namespace gantry::coll

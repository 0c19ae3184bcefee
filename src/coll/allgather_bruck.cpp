// SPDX-License-Identifier: BSD-3-Clause
//
// Bruck: a rank keeps blocks in the order of the ranks from itself upwards. In round k it sends all it
// has to the rank 2^k below and gets as many from the rank 2^k above, which follow its own. In the end
// the blocks go to their places.
//
//     steps ceil(log2 P); bytes sent per rank n (P - 1); memory: n P, packed
#include "coll/allgather_algorithms.hpp"
#include "coll/host_image.hpp"

#include <algorithm>

namespace gantry::coll {

Task<Status> allgather_bruck(Executor& executor, Run& run, p2p::Buffer mine, Blocks all) {
    const int size = run.size(), rank = run.rank();
    const Bytes block = all.of(rank).bytes();
    const layout::Layout& bytes = *transfer::bytes_buffer(nullptr, 0).layout;
    HostImage turned;
    Status ready = turned.allocate(run.team, block * static_cast<Bytes>(size), bytes);
    GANTRY_CO_TRY(ready);
    const auto blocks_from = [&](int first, int count) {
        return part_of(turned.buffer(), block * static_cast<Bytes>(first),
                       block * static_cast<Bytes>(count));
    };
    Status placed = co_await copy(executor, run.team, mine, blocks_from(0, 1));
    run.note(std::move(placed));
    for (int distance = 1; distance < size; distance *= 2) {
        const int count = std::min(distance, size - distance);
        const int to = (rank - distance + size) % size, from = (rank + distance) % size;
        Status met = co_await exchange(executor, run, blocks_from(0, count), to,
                                       blocks_from(distance, count), from);
    }
    for (int i = 0; i < size && !run.failed(); ++i) {
        placed = co_await copy(executor, run.team, blocks_from(i, 1), all.of((rank + i) % size));
        run.note(std::move(placed));
    }
    co_return run.status();
}

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Bruck: block number i of a rank is on its way to the rank i above it. In round k every block whose
// number has bit k moves on by 2^k ranks, all together in one message. After all rounds block i has
// moved by i and came from the rank i below.
//
//     steps ceil(log2 P); bytes sent per rank about n P / 2 in each; memory: 2 n P, packed
#include "coll/alltoall.hpp"
#include "coll/host_image.hpp"

#include <cstring>

namespace gantry::coll {

Task<Status> alltoall_bruck(Executor& executor, Team team, Blocks outgoing, Blocks incoming) {
    Run run(team);
    const int size = team.size(), rank = team.rank();
    const Bytes block = incoming.of(rank).bytes();
    const layout::Layout& bytes = *bytes_buffer(nullptr, 0).layout;
    HostImage moving, together, arrived;
    const Bytes whole = block * static_cast<Bytes>(size);
    for (HostImage* image : {&moving, &together, &arrived}) {
        const Bytes needed = image == &moving ? whole : block * static_cast<Bytes>((size + 1) / 2);
        Status ready = image->allocate(team, needed, bytes);
        GANTRY_CO_TRY(ready);
    }
    const auto number = [&](int i) {
        return part_of(moving.buffer(), block * static_cast<Bytes>(i), block);
    };
    for (int i = 0; i < size && !run.failed(); ++i) {
        Status placed = co_await copy(executor, team, outgoing.of((rank + i) % size), number(i));
        run.note(std::move(placed));
    }
    for (int distance = 1; distance < size; distance *= 2) {
        Bytes packed = 0;
        for (int i = distance; i < size; ++i) {
            if ((i & distance) == 0) continue;
            std::memcpy(static_cast<std::byte*>(together.address()) + packed, number(i).address,
                        block);
            packed += block;
        }
        const int to = (rank + distance) % size, from = (rank - distance + size) % size;
        Status met = co_await exchange(executor, run, together.first(packed), to,
                                       arrived.first(packed), from);
        Bytes taken = 0;
        for (int i = distance; i < size; ++i) {
            if ((i & distance) == 0) continue;
            std::memcpy(number(i).address, static_cast<std::byte*>(arrived.address()) + taken,
                        block);
            taken += block;
        }
    }
    for (int i = 0; i < size && !run.failed(); ++i) {
        Status placed =
            co_await copy(executor, team, number(i), incoming.of((rank - i + size) % size));
        run.note(std::move(placed));
    }
    co_return run.status();
}

}  // namespace gantry::coll

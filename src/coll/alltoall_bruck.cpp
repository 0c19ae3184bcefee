// SPDX-License-Identifier: BSD-3-Clause
//
// Bruck: block number i of a rank is on its way to the rank i above it. In round k every block whose
// number has bit k moves on by 2^k ranks, all together in one message. After all rounds block i has
// moved by i and came from the rank i below.
//
// Blocks of device memory are copied out, and back in, all together.
//
//     steps ceil(log2 P); bytes sent per rank about n P / 2 in each; memory: 2 n P, packed
#include "coll/alltoall.hpp"
#include "coll/node/exchange_scratch.hpp"
#include "coll/host_image.hpp"

#include <cstring>

namespace gantry::coll {
namespace {

// The block of each rank and a number of its own.
Task<Status> load(Executor& executor, Team team, const Blocks& outgoing,
                  std::vector<p2p::Buffer> numbers) {
    const int size = team.size(), rank = team.rank();
    if (!on_host(team, outgoing.of(rank))) {
        std::vector<p2p::Buffer> blocks;
        for (int i = 0; i < size; ++i)
            blocks.push_back(outgoing.of((rank + i) % size));
        Status loaded = co_await copy_blocks(executor, team, std::move(blocks), std::move(numbers));
        co_return loaded;
    }
    for (int i = 0; i < size; ++i) {
        Status placed = co_await copy(executor, team, outgoing.of((rank + i) % size),
                                      numbers[static_cast<std::size_t>(i)]);
        GANTRY_CO_TRY(placed);
    }
    co_return success();
}

// Numbers come from ranks in descending order: `sorted` has room for them in the order of ranks.
Task<Status> store(Executor& executor, Team team, std::vector<p2p::Buffer> numbers,
                   const Blocks& incoming, const HostImage& sorted, Bytes block) {
    const int size = team.size(), rank = team.rank();
    std::vector<p2p::Buffer> from, to;
    for (int source = 0; source < size; ++source) {
        const p2p::Buffer& number =
            numbers[static_cast<std::size_t>((rank - source + size) % size)];
        to.push_back(incoming.of(source));
        from.push_back(part_of(sorted.buffer(), block * static_cast<Bytes>(source), block));
        std::memcpy(from.back().address, number.address, block);
    }
    Status stored = co_await copy_blocks(executor, team, std::move(from), std::move(to));
    co_return stored;
}

}  // namespace

Task<Status> alltoall_bruck(Executor& executor, Team team, Blocks outgoing, Blocks incoming) {
    Run run(team);
    const int size = team.size(), rank = team.rank();
    const Bytes block = incoming.of(rank).bytes();
    const layout::Layout& bytes = *transfer::bytes_buffer(nullptr, 0).layout;
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
    std::vector<p2p::Buffer> numbers;
    for (int i = 0; i < size; ++i)
        numbers.push_back(number(i));
    Status loaded = co_await load(executor, team, outgoing, numbers);
    run.note(std::move(loaded));
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
    if (!run.failed() && !on_host(team, incoming.of(rank))) {
        HostImage sorted;
        Status stored = run.after(sorted.allocate(team, whole, bytes));
        GANTRY_CO_TRY(stored);
        stored = co_await store(executor, team, numbers, incoming, sorted, block);
        co_return stored;
    }
    for (int i = 0; i < size && !run.failed(); ++i) {
        Status placed =
            co_await copy(executor, team, number(i), incoming.of((rank - i + size) % size));
        run.note(std::move(placed));
    }
    co_return run.status();
}

}  // namespace gantry::coll

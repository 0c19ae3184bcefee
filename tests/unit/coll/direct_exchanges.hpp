// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges of ranks of one node in the world, checked byte by byte, and what they cost.
#pragma once

#include "coll/bcast.hpp"
#include "coll/node/exchange.hpp"
#include "coll/gather.hpp"
#include "collective_world.hpp"
#include "node_costs.hpp"

#include <fmt/format.h>

namespace gantry::coll::direct_exchanges {

using world::Bytebuffer;
using world::Ending;
using world::World;

struct Trial {
    int ranks = 2;
    int gpus = 8;
    Bytes bytes = 0;  // of a block
    bool unequal = false;
    bool in_place = false;  // not of unequal blocks of an all-to-all
    int rounds = 3;
    // The planner would send some by messages, and short ones through cells.
    plan::Algorithm fixed = plan::Algorithm::direct;
    Bytes segment = 0;  // 0: the planner's
    // Of each rank: what it sends from, what it receives into.
    std::function<std::pair<Place, Place>(int rank)> places = [](int) {
        return std::pair(Place::device, Place::device);
    };
    std::function<void(Rank&)> prepare = [](Rank&) {};
    device::IpcKind ipc = device::IpcKind::legacy;
    std::function<void(world::Options&)> change = [](world::Options&) {};
};

inline Bytes block_bytes(const Trial& test, int from, int to) {
    return test.unequal ? test.bytes * static_cast<Bytes>((from + 2 * to) % 3) : test.bytes;
}

inline std::uint64_t key_of(int round, int from, int to) {
    return static_cast<std::uint64_t>((round * 64 + from) * 64 + to);
}

// A part of a buffer, behind the device's back.
inline void fill_part(Rank& rank, Bytebuffer& buffer, std::uint64_t key, Bytes offset,
                      Bytes bytes) {
    if (bytes > 0)
        world::fill_pattern(rank.device.behind(buffer.address() + offset, bytes), key, bytes);
}

inline bool holds_part(Rank& rank, Bytebuffer& buffer, std::uint64_t key, Bytes offset,
                       Bytes bytes) {
    return bytes == 0 ||
           world::holds_pattern(rank.device.behind(buffer.address() + offset, bytes), key, bytes);
}

// Blocks of bytes in one buffer, with a gap behind each where they are unequal.
struct Parts {
    std::vector<std::int64_t> counts, displacements;
    Bytes all = 0;

    Blocks in(Bytebuffer& buffer, bool unequal) const {
        Blocks blocks;
        blocks.address = buffer.address();
        blocks.layout = buffer.whole().layout;
        if (unequal) {
            blocks.counts = counts;
            blocks.displacements = displacements;
        } else {
            blocks.count = counts.empty() ? 0 : static_cast<std::uint64_t>(counts[0]);
        }
        return blocks;
    }
};

template <class Size>
Parts parts(int ranks, bool unequal, Size size) {
    Parts parts;
    for (int rank = 0; rank < ranks; ++rank) {
        parts.counts.push_back(static_cast<std::int64_t>(size(rank)));
        parts.displacements.push_back(static_cast<std::int64_t>(parts.all));
        parts.all += size(rank) + (unequal ? 3 : 0);
    }
    return parts;
}

inline Task<Status> alltoalls(Rank& rank, const Trial& test) {
    test.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(test.fixed);
    const int me = rank.number, ranks = everybody.size();
    const auto [from, into] = test.places(me);
    const Parts out = parts(ranks, test.unequal, [&](int to) { return block_bytes(test, me, to); });
    const Parts in =
        parts(ranks, test.unequal, [&](int sender) { return block_bytes(test, sender, me); });
    Bytebuffer outgoing(rank, from, out.all, me % test.gpus, test.ipc),
        incoming(rank, into, in.all, me % test.gpus, test.ipc);
    for (int round = 0; round < test.rounds; ++round) {
        incoming.clear();
        for (int to = 0; to < ranks; ++to)
            fill_part(rank, test.in_place ? incoming : outgoing, key_of(round, me, to),
                      static_cast<Bytes>(out.displacements[static_cast<std::size_t>(to)]),
                      block_bytes(test, me, to));
        Status done;
        if (test.in_place)
            done = co_await alltoall_in_place(rank.executor, everybody.team(),
                                              in.in(incoming, test.unequal));
        else
            done = co_await alltoall(rank.executor, everybody.team(),
                                     out.in(outgoing, test.unequal), in.in(incoming, test.unequal));
        GANTRY_CO_TRY(done);
        for (int sender = 0; sender < ranks; ++sender)
            WORLD_CHECK(
                holds_part(rank, incoming, key_of(round, sender, me),
                           static_cast<Bytes>(in.displacements[static_cast<std::size_t>(sender)]),
                           block_bytes(test, sender, me)));
    }
    co_return success();
}

inline Task<Status> allgathers(Rank& rank, const Trial& test) {
    test.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(test.fixed);
    const int me = rank.number, ranks = everybody.size();
    const auto [from, into] = test.places(me);
    const auto size = [&](int sender) { return block_bytes(test, sender, 0); };
    const Parts in = parts(ranks, test.unequal, size);
    const auto own = static_cast<Bytes>(in.displacements[static_cast<std::size_t>(me)]);
    Bytebuffer outgoing(rank, from, size(me), me % test.gpus, test.ipc),
        incoming(rank, into, in.all, me % test.gpus, test.ipc);
    for (int round = 0; round < test.rounds; ++round) {
        incoming.clear();
        fill_part(rank, outgoing, key_of(round, me, 0), 0, size(me));
        if (test.in_place) fill_part(rank, incoming, key_of(round, me, 0), own, size(me));
        Status done = co_await allgather(rank.executor, everybody.team(), outgoing.whole(),
                                         in.in(incoming, test.unequal), test.in_place);
        GANTRY_CO_TRY(done);
        for (int sender = 0; sender < ranks; ++sender)
            WORLD_CHECK(
                holds_part(rank, incoming, key_of(round, sender, 0),
                           static_cast<Bytes>(in.displacements[static_cast<std::size_t>(sender)]),
                           size(sender)));
    }
    co_return success();
}

// Every rank in turn is the root of a broadcast, a gather and a scatter.
inline Task<Status> with_a_root(Rank& rank, const Trial& test) {
    test.prepare(rank);
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(test.fixed);
    const int me = rank.number, ranks = everybody.size(), gpu = me % test.gpus;
    const auto [from, into] = test.places(me);
    const Parts each = parts(ranks, test.unequal, [&](int of) { return block_bytes(test, of, 0); });
    const Bytes mine = block_bytes(test, me, 0);
    const auto at = [&](int of) {
        return static_cast<Bytes>(each.displacements[static_cast<std::size_t>(of)]);
    };
    for (int root = 0; root < ranks; ++root) {
        Bytebuffer one(rank, me == root ? from : into, test.bytes, gpu, test.ipc);
        if (me == root) fill_part(rank, one, key_of(root, 0, 0), 0, test.bytes);
        Status told = co_await bcast(rank.executor, everybody.team(), one.whole(), root);
        GANTRY_CO_TRY(told);
        WORLD_CHECK(holds_part(rank, one, key_of(root, 0, 0), 0, test.bytes));
        Bytebuffer block(rank, from, mine, gpu, test.ipc), all(rank, into, each.all, gpu, test.ipc);
        fill_part(rank, block, key_of(root, me, 1), 0, mine);
        if (test.in_place && me == root) fill_part(rank, all, key_of(root, me, 1), at(me), mine);
        Status gathered =
            co_await gather(rank.executor, everybody.team(), block.whole(),
                            each.in(all, test.unequal), root, test.in_place && me == root);
        GANTRY_CO_TRY(gathered);
        for (int of = 0; me == root && of < ranks; ++of)
            WORLD_CHECK(
                holds_part(rank, all, key_of(root, of, 1), at(of), block_bytes(test, of, 0)));
        block.clear();
        for (int of = 0; of < ranks; ++of)
            fill_part(rank, all, key_of(root, of, 2), at(of), block_bytes(test, of, 0));
        Status scattered =
            co_await scatter(rank.executor, everybody.team(), each.in(all, test.unequal),
                             block.whole(), root, test.in_place && me == root);
        GANTRY_CO_TRY(scattered);
        const Bytes got = test.in_place && me == root ? 0 : mine;
        WORLD_CHECK(holds_part(rank, block, key_of(root, me, 2), 0, got));
    }
    co_return success();
}

inline Task<Status> bcasts(Rank& rank, const Trial& test) {
    Everybody everybody(rank);
    everybody.common().job.tuning.fixed.fill(test.fixed);
    everybody.common().job.tuning.segment = test.segment;
    test.prepare(rank);
    const auto [from, into] = test.places(rank.number);
    for (int round = 0; round < test.rounds; ++round) {
        const int root = round % everybody.size();
        Bytebuffer buffer(rank, rank.number == root ? from : into, test.bytes, rank.number);
        if (rank.number == root) buffer.fill(key_of(round, root, 0));
        Status told = co_await bcast(rank.executor, everybody.team(), buffer.whole(), root);
        GANTRY_CO_TRY(told);
        WORLD_CHECK(buffer.holds(key_of(round, root, 0), test.bytes));
    }
    co_return success();
}

using Operations = Task<Status> (*)(Rank&, const Trial&);

inline NodeCosts run(Operations operations, const Trial& test, std::uint64_t seed = 1) {
    return costs_on_node(
        test.ranks, seed, [&](Rank& rank) { return operations(rank, test); },
        fmt::format("{} bytes", test.bytes), test.change);
}

}  // namespace gantry::coll::direct_exchanges

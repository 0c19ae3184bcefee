// SPDX-License-Identifier: BSD-3-Clause
//
// Two tasks make the pieces in turn, so that a launch waits in the GPU while the one before it runs. Each
// of them tells how many of its pieces are done: one row of parts of the step for each.
#include "coll/node/store_shares.hpp"

#include "base/scope.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

constexpr int kTasks = 2;

struct Share {
    Bytes first, bytes;
};

// Of a piece, what goes to the rank that is number `number` of those beside the root. Shares begin where a
// kernel stores whole words.
Share share_of(Bytes piece, Bytes number, Bytes others) {
    constexpr Bytes kLine = 128;
    const Bytes each = (piece / others + kLine - 1) / kLine * kLine;
    const Bytes first = std::min(piece, number * each);
    const Bytes end = number + 1 == others ? piece : std::min(piece, first + each);
    return {first, end - first};
}

Status map_sinks(SharedStores& stores) {
    for (int member = 0; member < stores.team.size(); ++member) {
        stores.sinks.push_back(nullptr);
        if (member == stores.root || member == stores.team.rank()) continue;
        const MemoryOffer& offer = stores.handshake.offer<MemoryOffer>(member);
        const BlockPlace room = sink_place(offer, stores.handshake.cell_of(member), stores.root);
        if (room.bytes < stores.vector.bytes())
            return failure(
                MPI_ERR_TRUNCATE,
                "rank {} takes {} bytes of a broadcast of {}: counts and datatypes of all "
                "ranks must agree",
                member, room.bytes, stores.vector.bytes());
        Result<std::byte*> there = stores.mapped.at(offer.sink_handle, stores.gpu, room.at);
        GANTRY_TRY(there.status());
        stores.sinks.back() = *there;
    }
    return success();
}

// What this rank stores of the bytes [begin, begin + bytes): from the root every share to its rank, from
// the others their own share to all.
std::vector<device::Copy> copies_of(const SharedStores& stores, Bytes begin, Bytes bytes) {
    const auto others = static_cast<Bytes>(stores.team.size() - 1);
    const auto number_of = [&](int member) {
        return static_cast<Bytes>(member < stores.root ? member : member - 1);
    };
    const int me = stores.team.rank();
    std::vector<device::Copy> copies;
    for (int member = 0; member < stores.team.size(); ++member) {
        std::byte* const sink = stores.sinks[static_cast<std::size_t>(member)];
        if (sink == nullptr) continue;
        const Share share = share_of(bytes, number_of(me == stores.root ? member : me), others);
        if (share.bytes == 0) continue;
        device::Copy copy = one_of_several(stores.gpu);
        copy.source = stores.vector.data() + begin + share.first;
        copy.destination = sink + begin + share.first;
        copy.bytes = share.bytes;
        copies.push_back(copy);
    }
    return copies;
}

// Every second piece.
Task<Status> pieces_of(Executor& executor, SharedStores* stores, int task) {
    const bool is_root = stores->team.rank() == stores->root;
    const auto row = static_cast<std::size_t>(task);
    const Bytes all = stores->vector.bytes();
    std::uint32_t done = 0;
    for (Bytes begin = static_cast<Bytes>(task) * stores->piece; begin < all;
         begin += kTasks * stores->piece) {
        if (!is_root) {
            Status there = co_await stores->handshake.part_raised(executor, stores->root, kStored,
                                                                  row, done + 1);
            GANTRY_CO_TRY(there);
        }
        std::vector<device::Copy> copies =
            copies_of(*stores, begin, std::min(stores->piece, all - begin));
        Status stored = co_await copy_all(executor, stores->team, std::move(copies));
        GANTRY_CO_TRY(stored);
        ++done;
        if (is_root) stores->handshake.raise_part(kStored, row, done);
    }
    co_return success();
}

}  // namespace

SharedStores::SharedStores(const Team& its_team, transfer::Handshake& its_handshake, int its_root,
                           p2p::Buffer its_vector, Bytes its_piece)
    : team(its_team),
      handshake(its_handshake),
      root(its_root),
      vector(its_vector),
      piece(std::max<Bytes>(its_piece, 1)),
      mapped(its_team.context->device) {
    // The GPU that this rank's part of the vector is on.
    const MemoryOffer& mine = handshake.offer<MemoryOffer>(team.rank());
    gpu = team.context->device.gpu_of(team.rank() == root ? mine.source_handle.gpu
                                                          : mine.sink_handle.gpu);
}

Task<Status> store_shares(Executor& executor, SharedStores* stores) {
    Status ready = map_sinks(*stores);
    GANTRY_CO_TRY(ready);
    Scope tasks(executor);
    for (int task = 0; task < kTasks; ++task)
        tasks.spawn(pieces_of(executor, stores, task));
    Status ended = co_await tasks.join(executor);
    co_return ended;
}

}  // namespace gantry::coll

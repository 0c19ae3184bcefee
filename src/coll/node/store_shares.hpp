// SPDX-License-Identifier: BSD-3-Clause
//
// A broadcast of a long vector between GPUs of one node. Every piece of it is cut into shares, one for each
// rank beside the root: the root stores a share into the memory of its rank, who stores it into that of
// the others while the root goes on with the next piece.
//
//     root  --share 1 of piece 2-->  rank 1  --share 1 of piece 1-->  ranks 2, 3
//           --share 2 of piece 2-->  rank 2  --share 2 of piece 1-->  ranks 1, 3
//
//     launches: one a rank and piece; bytes out of the root n, out of the others n (P - 2) / (P - 1);
//     memory: none
#pragma once

#include "coll/node/exchange_offer.hpp"
#include "coll/node/mapped_peers.hpp"

namespace gantry::coll {

struct SharedStores {
    SharedStores(const Team& its_team, transfer::Handshake& its_handshake, int its_root,
                 p2p::Buffer its_vector, Bytes its_piece);

    const Team team;
    transfer::Handshake& handshake;
    const int root;
    const p2p::Buffer vector;  // this rank's
    const Bytes piece;
    MappedPeers mapped;
    int gpu;
    std::vector<std::byte*> sinks;  // by rank; null: the root's, and this rank's own
};

// This rank's part; all have posted a MemoryOffer. It ends when its own stores have. `stores` outlives it.
Task<Status> store_shares(Executor& executor, SharedStores* stores);

}  // namespace gantry::coll

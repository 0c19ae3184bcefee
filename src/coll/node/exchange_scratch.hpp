// SPDX-License-Identifier: BSD-3-Clause
//
// DirectScratch: device memory of our own for the blocks of a direct exchange that cannot be used
// where they lie. The exchange sees packed blocks instead:
//
//   received   strided, in several allocations, or in memory that peers cannot map (pools, virtual
//              memory): peers store into scratch memory, and unpack() moves what came in place
//   sent       strided or in several allocations: pack() makes one run of them
//
// Where no scratch memory is to be had, blocks stay as they are, and the exchange goes by messages.
#pragma once

#include "base/task.hpp"
#include "coll/device_scratch.hpp"
#include "coll/node/exchange_offer.hpp"

#include <vector>

namespace gantry::coll {

// Between buffers of equal bytes, all at once; neighbours on both sides are one copy.
Task<Status> copy_blocks(Executor& executor, Team team, std::vector<p2p::Buffer> from,
                         std::vector<p2p::Buffer> to);

class DirectScratch {
  public:
    explicit DirectScratch(const Team& team) : team_(team) {}

    // Replaces such blocks of the traffic.
    void replace(Traffic& traffic);
    bool replaces() const { return !outgoing_.empty() || !incoming_.empty(); }
    // Outgoing blocks, before anybody reads them or stores into incoming ones.
    Task<Status> pack(Executor& executor);
    // Incoming blocks, when all have stored.
    Task<Status> unpack(Executor& executor);

  private:
    struct Moved {
        p2p::Buffer block, packed;
    };
    Task<Status> copy_all(Executor& executor, const std::vector<Moved>& moved,
                          p2p::Buffer Moved::*source, p2p::Buffer Moved::*sink);
    std::vector<Moved> move(std::vector<p2p::Buffer>& blocks, DeviceScratch& memory);

    const Team team_;
    std::vector<Moved> outgoing_, incoming_;
    DeviceScratch out_memory_, in_memory_;
};

}  // namespace gantry::coll

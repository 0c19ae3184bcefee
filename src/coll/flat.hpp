// SPDX-License-Identifier: BSD-3-Clause
//
// Flat: a buffer as one run of bytes, in the order of its type map, which algorithms cut where they
// like. A contiguous buffer is one already, in whatever memory; any other is packed into host memory.
// Ranks whose datatypes differ agree on the bytes, since their signatures are the same.
#pragma once

#include "coll/exchange.hpp"
#include "coll/host_image.hpp"

namespace gantry::coll {

class Flat {
  public:
    // `buffer` outlives it.
    Status make(const Team& team, const p2p::Buffer& buffer);
    // From and to the buffer; nothing to do where it is contiguous.
    Task<Status> load(Executor& executor, Team team);
    Task<Status> store(Executor& executor, Team team);
    const p2p::Buffer& bytes() const { return bytes_; }

  private:
    p2p::Buffer original_, bytes_;
    HostImage packed_;
    bool apart_ = false;
};

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// Relay: pieces of device memory that come from another node and go on to a third one. They come into
// page-locked slots, go on from there, and are copied into the GPU meanwhile: nothing is copied out of
// the GPU to be sent on.
//
//     receive 0 | send 0 on          | receive 3 ...     slot 0
//               | copy 0 into the GPU|
//                 receive 1 | send 1 on ...              slot 1
//
// A rank decides for itself: messages have the same sizes and tags whether it stages or not.
#pragma once

#include "coll/exchange.hpp"
#include "transfer/pipeline/stage.hpp"

#include <memory>
#include <vector>

namespace gantry::coll {

class Relay {
  public:
    // For pieces of at most so many bytes that come from `from` and go to `to`, of a buffer in the same
    // memory as `like`; as many slots as pieces that can be under way.
    Relay(Executor& executor, const Team& team, const p2p::Buffer& like, int from, int to,
          Bytes piece, int slots);

    // False: host memory, neighbours that messages reach without slots, or no free slots. Pieces are then
    // received where they belong.
    bool on() const { return !stages_.empty(); }
    // Before piece number `index` is received: waits for the last copy out of its slot. The caller has
    // waited for the message that was sent from there.
    Task<Status> ready(Executor& executor, std::uint64_t index);
    p2p::Buffer slot(std::uint64_t index, Bytes bytes) const;
    // It has come: starts its copy to where it belongs.
    void place(Executor& executor, std::uint64_t index, const p2p::Buffer& block);
    // All copies have ended.
    Task<Status> all(Executor& executor);

  private:
    transfer::Stage& stage_of(std::uint64_t index) const {
        return *stages_[index % stages_.size()];
    }
    const Team team_;
    std::vector<std::unique_ptr<transfer::Stage>> stages_;
};

}  // namespace gantry::coll

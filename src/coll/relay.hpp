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
// A rank decides for itself: its neighbours get the same messages.
#pragma once

#include "base/scope.hpp"
#include "coll/exchange.hpp"
#include "transfer/slots.hpp"

#include <memory>
#include <vector>

namespace gantry::coll {

class Relay {
  public:
    // For pieces of at most so many bytes that come from `from` and go to `to`, of a buffer where
    // `like` is; as many slots as pieces that can be under way.
    Relay(Executor& executor, const Team& team, const p2p::Buffer& like, int from, int to,
          Bytes piece, int slots);
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    // False: host memory, neighbours on this node, or no slots: pieces come where they belong.
    bool on() const { return !slots_.empty(); }
    // Where piece number `index` comes to; the message that left from this slot before has ended.
    // Ends when the slot's last copy has.
    Task<Status> ready(Executor& executor, std::uint64_t index);
    p2p::Buffer slot(std::uint64_t index, Bytes bytes) const;
    // It has come: starts its copy to where it belongs.
    void place(Executor& executor, std::uint64_t index, const p2p::Buffer& block);
    // All copies have ended.
    Task<Status> all(Executor& executor);

  private:
    struct Slot {
        explicit Slot(Executor& executor) : copies(executor) {}
        transfer::Slot memory;
        Scope copies;
    };
    Slot& slot_of(std::uint64_t index) const { return *slots_[index % slots_.size()]; }
    const Team team_;
    transfer::SlotPool* pool_ = nullptr;
    std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace gantry::coll

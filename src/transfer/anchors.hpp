// SPDX-License-Identifier: BSD-3-Clause
//
// Anchors. Opening memory of another GPU costs 1 to 6 ms as long as nothing of that GPU is open here, and
// 0.1 ms then (docs/design/mappings.md). So one small mapping of each GPU that device messages go to or
// come from is kept open, by the GPU of ours that they have their other end on:
//
//   receiver (or sender)                        the other one
//     |  first message between their GPUs
//     | --- ANCHOR [handle of 4 KiB of ours] --> |  opens it when no device work is pending
//     | <-- ANCHOR [handle of its own] --------- |
//     |  opens it
//
// Opening one stalls whatever else the process asks the driver for, so it is one at a time.
#pragma once

#include "transfer/mapping.hpp"

#include <optional>
#include <vector>

namespace gantry::transfer {

class Anchors {
  public:
    // `possible`: false, there are none.
    Anchors(device::Device& device, bool possible) : device_(device), possible_(possible) {}

    // A device message to or from a peer of the node has this end here.
    void note_end(const device::Location& mine) {
        if (mine.on_device()) last_end_ = mine;
    }
    // Its other end is on another GPU: the peer is to be told of ours.
    void meet(int peer);
    void hear(int peer, const device::IpcHandle& anchor);
    // Whether that peer was told, and can have it open.
    bool told(int peer) const;

    // That peer is gone for good, and its anchors with it.
    void forget(int peer);

    bool has_work() const {
        return !untold_.empty() || !unopened_.empty() ||
               (!open_.empty() && losses_ != device_.losses());
    }
    struct Telling {
        int peer;
        device::IpcHandle handle;
    };
    std::optional<Telling> next_to_tell();
    // One at most. The peer whose GPU has one now; -1: none has.
    int open_one();
    // Before the device is shut down.
    void end() {
        possible_ = false;
        untold_.clear();
        unopened_.clear();
        open_.clear();
    }

  private:
    struct Heard {
        int peer = -1;
        device::IpcHandle handle;
        int gpu = -1;  // of ours
    };
    device::IpcHandle ours();
    void look_for_lost();

    device::Device& device_;
    bool possible_;
    device::Location last_end_;
    std::vector<device::IpcHandle> ours_;  // one on each GPU
    std::vector<int> untold_, told_;       // peers
    std::vector<Heard> unopened_;
    struct Open {
        Heard of;
        Mapping mapping;
    };
    std::vector<Open> open_;
    std::uint64_t losses_ = 0;  // of the device, when all of them were there
};

}  // namespace gantry::transfer

// SPDX-License-Identifier: BSD-3-Clause
//
// SharedMapping: one allocation of a peer as it is mapped here, opened by the first of the copies that
// use it at once and closed by the last. A window of messages from one allocation asks the device once.
#pragma once

#include "transfer/endpoint.hpp"
#include "transfer/mapping.hpp"

#include <new>

namespace gantry::transfer {

class SharedMapping {
  public:
    // That allocation with one more user, if it is mapped already; null: it is not, or there is no memory.
    static SharedMapping* use(device::Device& device, Endpoint& peer,
                              const device::IpcHandle& handle, int gpu) {
        SharedMapping* const recent = peer.recent_mapping;
        if (recent != nullptr && recent->mapping_.handle().buffer_id == handle.buffer_id &&
            recent->mapping_.gpu() == gpu && recent->losses_ == device.losses()) {
            ++recent->users_;
            return recent;
        }
        Mapping known = Mapping::of_open(device, handle, gpu);
        if (!known.is_open()) return nullptr;
        auto* const made = new (std::nothrow) SharedMapping(device, peer, std::move(known));
        if (made != nullptr) peer.recent_mapping = made;
        return made;
    }
    void release() {
        if (--users_ > 0) return;
        if (peer_.recent_mapping == this) peer_.recent_mapping = nullptr;
        delete this;
    }
    // No other copy uses it now.
    bool is_used_once() const { return users_ == 1; }
    // Where the exporter's address is here.
    std::byte* at(std::uintptr_t address) const { return mapping_.at(address); }

  private:
    SharedMapping(const device::Device& device, Endpoint& peer, Mapping mapping)
        : peer_(peer), mapping_(std::move(mapping)), losses_(device.losses()) {}

    Endpoint& peer_;
    const Mapping mapping_;
    const std::uint64_t losses_;  // of the device, when it was opened
    unsigned users_ = 1;
};

}  // namespace gantry::transfer

// SPDX-License-Identifier: BSD-3-Clause
//
// SharedMapping: one allocation of a peer as it is mapped here, opened by the first of the copies that
// use it at once and closed by the last. A window of messages from one allocation asks the device once.
#pragma once

#include "transfer/endpoint.hpp"

#include <new>

namespace gantry::transfer {

class SharedMapping {
  public:
    // That allocation with one more user, if it is mapped already; null: it is not, or there is no memory.
    static SharedMapping* use(device::Device& device, Endpoint& peer,
                              const device::IpcHandle& handle, int gpu) {
        SharedMapping* const recent = peer.recent_mapping;
        if (recent != nullptr && recent->handle_.buffer_id == handle.buffer_id &&
            recent->gpu_ == gpu && recent->losses_ == device.losses()) {
            ++recent->users_;
            return recent;
        }
        Result<void*> known = device.open_memory(handle, gpu, device::Opening::known_only);
        void* const mapped = known.ok() ? *known : nullptr;
        if (mapped == nullptr) return nullptr;
        auto* const made = new (std::nothrow) SharedMapping(device, peer, handle, gpu, mapped);
        if (made == nullptr)
            device.close_memory(handle, gpu);
        else
            peer.recent_mapping = made;
        return made;
    }
    void release() {
        if (--users_ > 0) return;
        device_.close_memory(handle_, gpu_);
        if (peer_.recent_mapping == this) peer_.recent_mapping = nullptr;
        delete this;
    }
    // No other copy uses it now.
    bool is_used_once() const { return users_ == 1; }
    // Where the exporter's address is here.
    std::byte* at(std::uintptr_t address) const { return base_ + (address - handle_.base); }

  private:
    SharedMapping(device::Device& device, Endpoint& peer, const device::IpcHandle& handle, int gpu,
                  void* mapped)
        : device_(device),
          peer_(peer),
          handle_(handle),
          gpu_(gpu),
          base_(static_cast<std::byte*>(mapped)),
          losses_(device.losses()) {}

    device::Device& device_;
    Endpoint& peer_;
    const device::IpcHandle handle_;
    const int gpu_;
    std::byte* const base_;       // where handle.base is here
    const std::uint64_t losses_;  // of the device, when it was opened
    unsigned users_ = 1;
};

}  // namespace gantry::transfer

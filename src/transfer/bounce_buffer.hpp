// SPDX-License-Identifier: BSD-3-Clause
//
// BounceBuffer: scratch memory beside a buffer: to receive into what shall replace one that is being
// sent (MPI_Sendrecv_replace), or to pack into on a GPU.
#pragma once

#include "device/device.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace gantry::transfer {

class BounceBuffer {
  public:
    // On the GPU of `like`, if there is such memory; else, or where it is null, on the host.
    BounceBuffer(device::Device& device, const void* like, Bytes bytes)
        : device_(device), borrowed_(like != nullptr ? device.borrow(like, bytes) : nullptr) {
        if (borrowed_ == nullptr)
            on_host_.reset(new (std::nothrow) std::byte[bytes > 0 ? bytes : 1]);
    }
    // On that GPU alone. The device knows what it was asked about.
    enum class Place : std::uint8_t { gpu };
    BounceBuffer(device::Device& device, const void* like, Bytes bytes, Place)
        : device_(device), borrowed_(device.borrow(like, bytes)) {
        if (borrowed_ != nullptr && !device.classify(borrowed_, bytes).ok())
            device.give_back(std::exchange(borrowed_, nullptr));
    }
    ~BounceBuffer() {
        if (borrowed_ != nullptr) device_.give_back(borrowed_);
    }
    BounceBuffer(const BounceBuffer&) = delete;
    BounceBuffer& operator=(const BounceBuffer&) = delete;

    // A peer may write into it still: nobody gets it again.
    void leave() { borrowed_ = nullptr; }

    // Null: there is no memory.
    void* data() const { return borrowed_ != nullptr ? borrowed_ : on_host_.get(); }
    std::byte* bytes() const { return static_cast<std::byte*>(data()); }

  private:
    device::Device& device_;
    void* borrowed_;
    std::unique_ptr<std::byte[]> on_host_;
};

}  // namespace gantry::transfer

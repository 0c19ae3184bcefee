// SPDX-License-Identifier: BSD-3-Clause
//
// Image: elements where the reducer works. Either memory of its own, with the layout of the program's
// buffer, or the program's buffer itself. Memory of its own on a GPU is the device's scratch; where
// that is used up, it is on the host, and combine() finds out.
#pragma once

#include "coll/device_scratch.hpp"
#include "coll/host_image.hpp"
#include "coll/reducer.hpp"
#include "coll/team.hpp"

#include <utility>

namespace gantry::coll {

class Image {
  public:
    // Memory for `count` elements of `layout`; its content is not defined.
    Status allocate(const Team& team, std::uint64_t count, const layout::Layout& layout,
                    const Reducer& reducer);
    void borrow(const p2p::Buffer& buffer) { buffer_ = buffer; }
    const p2p::Buffer& buffer() const { return buffer_; }
    void* address() const { return buffer_.address; }
    // Its first elements.
    p2p::Buffer first(std::uint64_t count) const {
        return {buffer_.address, count, buffer_.layout};
    }
    void swap(Image& other) {
        std::swap(buffer_, other.buffer_);
        on_host_.swap(other.on_host_);
        std::swap(on_device_, other.on_device_);
    }

  private:
    p2p::Buffer buffer_;
    HostImage on_host_;
    DeviceScratch on_device_;
};

}  // namespace gantry::coll

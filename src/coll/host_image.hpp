// SPDX-License-Identifier: BSD-3-Clause
//
// HostImage: elements in host memory that the CPU can reduce. Either scratch memory, with the layout
// of the program's buffer, or the program's buffer itself when that is host memory.
#pragma once

#include "base/task.hpp"
#include "coll/planner.hpp"
#include "coll/team.hpp"

#include <utility>

namespace gantry::coll {

class HostImage {
  public:
    // Memory for `count` elements of `layout`; its content is not defined.
    Status allocate(const Team& team, std::uint64_t count, const layout::Layout& layout);
    void borrow(const p2p::Buffer& buffer) { buffer_ = buffer; }
    const p2p::Buffer& buffer() const { return buffer_; }
    void* address() const { return buffer_.address; }
    // Its first elements.
    p2p::Buffer first(std::uint64_t count) const {
        return {buffer_.address, count, buffer_.layout};
    }
    void swap(HostImage& other) {
        std::swap(buffer_, other.buffer_);
        std::swap(memory_, other.memory_);
    }

  private:
    p2p::Buffer buffer_;
    Scratch::Block memory_;
};

// Elements [from, from + count) of a buffer.
inline p2p::Buffer part_of(const p2p::Buffer& whole, std::uint64_t from, std::uint64_t count) {
    if (whole.layout == nullptr) return whole;
    return {static_cast<std::byte*>(whole.address) +
                static_cast<std::ptrdiff_t>(from) * whole.layout->extent,
            count, whole.layout};
}

// Whether the CPU may work on the buffer in place.
bool on_host(const Team& team, const p2p::Buffer& buffer);
// Between buffers of equal data bytes, of any layout and memory kind.
Task<Status> copy(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink);

}  // namespace gantry::coll

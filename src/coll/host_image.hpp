// SPDX-License-Identifier: BSD-3-Clause
//
// HostImage: elements in host memory that the CPU can reduce. Either its own memory, with the
// layout of the program's buffer, or the program's buffer itself when that is host memory.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"

#include <cstdlib>
#include <memory>

namespace gantry::coll {

class HostImage {
  public:
    // Memory for `count` elements of `layout`; its content is not defined.
    Status allocate(std::uint64_t count, const layout::Layout& layout);
    void borrow(const p2p::Buffer& buffer) { buffer_ = buffer; }
    const p2p::Buffer& buffer() const { return buffer_; }
    void* address() const { return buffer_.address; }
    void swap(HostImage& other) {
        std::swap(buffer_, other.buffer_);
        std::swap(memory_, other.memory_);
    }

  private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    p2p::Buffer buffer_;
    std::unique_ptr<void, Free> memory_;
};

// Whether the CPU may work on the buffer in place.
bool on_host(const Team& team, const p2p::Buffer& buffer);
// Between buffers of equal layout and count, of any memory kind.
Task<Status> copy(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink);

}  // namespace gantry::coll

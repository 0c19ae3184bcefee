// SPDX-License-Identifier: BSD-3-Clause
//
// Scratch: host memory for collectives that outlives one of them. Memory that is freed goes back to
// the system and is faulted in again, page by page, by the next collective: that took longer than the
// collective. So what an operation gives back is kept for the next one, up to a bound.
#pragma once

#include "base/units.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace gantry::coll {

class Scratch {
  public:
    // Keeps so many bytes at most.
    explicit Scratch(Bytes bound) : bound_(bound) {}
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    // Memory of somebody; goes back at its end. Without a pool it is the system's.
    class Block {
      public:
        Block() = default;
        Block(Block&& other) noexcept
            : address_(std::exchange(other.address_, nullptr)),
              bytes_(other.bytes_),
              pool_(other.pool_) {}
        Block& operator=(Block&& other) noexcept {
            std::swap(address_, other.address_);
            std::swap(bytes_, other.bytes_);
            std::swap(pool_, other.pool_);
            return *this;
        }
        ~Block();
        void* address() const { return address_; }

      private:
        friend class Scratch;
        void* address_ = nullptr;
        Bytes bytes_ = 0;
        Scratch* pool_ = nullptr;
    };
    // No address: memory is exhausted. `pool` may be null.
    static Block take(Scratch* pool, Bytes bytes);

    Bytes kept() const { return kept_bytes_; }
    std::uint64_t allocations() const { return allocations_; }

  private:
    struct Kept {
        void* address;
        Bytes bytes;
    };
    void give_back(void* address, Bytes bytes);

    const Bytes bound_;
    Bytes kept_bytes_ = 0;
    std::uint64_t allocations_ = 0;
    std::vector<Kept> kept_;  // the last one was used last
};

}  // namespace gantry::coll

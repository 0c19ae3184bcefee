// SPDX-License-Identifier: BSD-3-Clause
//
// UnexpectedBuffer: bytes that arrived and wait, in memory of ours, for the receive or the copy engine that
// takes them. In the heap, or in a slot of the staging pool: that is page-locked, so a copy to a
// device reads it directly instead of through the driver's own staging.
#pragma once

#include "transfer/slots.hpp"

#include <memory>
#include <utility>

namespace gantry::p2p {

using transfer::Slot;
using transfer::SlotPool;
using transfer::SlotUse;

class UnexpectedBuffer {
  public:
    UnexpectedBuffer() = default;
    explicit UnexpectedBuffer(std::unique_ptr<std::byte[]> heap) : heap_(std::move(heap)) {}
    UnexpectedBuffer(SlotPool& pool, const Slot& slot) : pool_(&pool), slot_(slot) {}
    UnexpectedBuffer(UnexpectedBuffer&& other) noexcept
        : heap_(std::move(other.heap_)),
          pool_(std::exchange(other.pool_, nullptr)),
          slot_(other.slot_) {}
    UnexpectedBuffer& operator=(UnexpectedBuffer&& other) noexcept {
        std::swap(heap_, other.heap_);
        std::swap(pool_, other.pool_);
        std::swap(slot_, other.slot_);
        return *this;
    }
    ~UnexpectedBuffer() { let_go(); }
    // At the latest when it ends; a coroutine that has ended may keep it for long.
    void let_go() {
        heap_.reset();
        if (pool_ != nullptr) std::exchange(pool_, nullptr)->release(slot_);
    }

    // Null: nothing is kept.
    std::byte* data() const { return pool_ != nullptr ? slot_.memory : heap_.get(); }

  private:
    std::unique_ptr<std::byte[]> heap_;
    SlotPool* pool_ = nullptr;
    Slot slot_;
};

}  // namespace gantry::p2p

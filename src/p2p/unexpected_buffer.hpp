// SPDX-License-Identifier: BSD-3-Clause
//
// UnexpectedBuffer: bytes that arrived and wait, in memory of ours, for the receive or the copy engine that
// takes them. In the heap, or in a slot of the staging pool: that is page-locked, so a copy to a
// device reads it directly instead of through the driver's own staging.
#pragma once

#include "transfer/pipeline/stage.hpp"

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
    explicit UnexpectedBuffer(transfer::HeldSlot slot) : slot_(std::move(slot)) {}
    // At the latest when it ends; a coroutine that has ended may keep it for long.
    void let_go() {
        heap_.reset();
        slot_.give_back();
    }

    // Null: nothing is kept.
    std::byte* data() const { return slot_ ? slot_.memory() : heap_.get(); }

  private:
    std::unique_ptr<std::byte[]> heap_;
    transfer::HeldSlot slot_;
};

}  // namespace gantry::p2p

// SPDX-License-Identifier: BSD-3-Clause
//
// HeldSlot: a slot of this rank's page-locked staging memory, which its destructor gives back. All who
// stage hold one, but for chunks of messages: their slots are lent to the receiver
// (docs/design/staged-pipeline.md).
// Stage: a held slot, and the copies into it and out of it that outlive the call that starts them.
#pragma once

#include "base/scope.hpp"
#include "transfer/buffer.hpp"
#include "transfer/staging_pool.hpp"

#include <utility>

namespace gantry::transfer {

class HeldSlot {
  public:
    HeldSlot() = default;
    HeldSlot(SlotPool& pool, const Slot& slot) : pool_(&pool), slot_(slot) {}
    HeldSlot(HeldSlot&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), slot_(other.slot_) {}
    HeldSlot& operator=(HeldSlot&& other) noexcept {
        std::swap(pool_, other.pool_);
        std::swap(slot_, other.slot_);
        return *this;
    }
    ~HeldSlot() { give_back(); }

    // Does not wait; empty where none is free, or no slot is as long as that.
    static HeldSlot try_take(StagingPools& pools, Bytes bytes, SlotUse use) {
        Result<SlotPool*> pool = pools.own(transport::Pool::device_slots);
        if (!pool.ok() || bytes > (*pool)->largest()) return {};
        const Slot slot = (*pool)->try_acquire(bytes, use);
        return slot.units != 0 ? HeldSlot(**pool, slot) : HeldSlot();
    }
    // Waits until one is free.
    static Task<Result<HeldSlot>> take(Executor& executor, StagingPools& pools, Bytes bytes,
                                       SlotUse use) {
        Result<SlotPool*> pool = pools.own(transport::Pool::device_slots);
        GANTRY_CO_TRY(pool.status());
        Result<Slot> slot = co_await (*pool)->acquire(executor, bytes, use);
        GANTRY_CO_TRY(slot.status());
        co_return HeldSlot(**pool, *slot);
    }

    explicit operator bool() const { return pool_ != nullptr; }
    // Null: there is no slot.
    std::byte* memory() const { return pool_ != nullptr ? slot_.memory : nullptr; }
    void give_back() {
        if (pool_ != nullptr) std::exchange(pool_, nullptr)->release(slot_);
    }

  private:
    SlotPool* pool_ = nullptr;
    Slot slot_;
};

struct Stage {
    explicit Stage(Executor& executor, HeldSlot held = {})
        : slot(std::move(held)), copies(executor) {}
    // The first bytes of the slot.
    Buffer bytes(Bytes length) const { return bytes_buffer(slot.memory(), length); }
    HeldSlot slot;
    Scope copies;
};

}  // namespace gantry::transfer

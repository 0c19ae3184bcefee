// SPDX-License-Identifier: BSD-3-Clause
//
// InUse: device memory of which nobody need be asked whether it is still there. A program must not
// free memory that an operation under way uses, so while one uses an allocation every other buffer
// inside it is known without a call of the driver. The messages of a window mostly lie in one
// allocation: the question is half of an MPI_Irecv (docs/design/pointer-classification.md).
#pragma once

#include "device/pointer_cache.hpp"

#include <array>
#include <cstdint>

namespace gantry::device {

class InUse {
  public:
    // The allocation's place here, for release(); 0: there was none for it.
    using Hold = std::uint8_t;

    // Programs without a GPU never hold anything.
    bool empty() const { return holds_ == 0; }
    // `losses`: the device's count; what it said before its last loss may be gone. Null: ask it.
    const Location* find(const void* address, Bytes bytes, std::uint64_t losses) const {
        for (const Entry& entry : entries_)
            if (entry.operations > 0 && entry.losses == losses &&
                Range{entry.location.base, entry.location.size}.contains(
                    reinterpret_cast<std::uintptr_t>(address), bytes))
                return &entry.location;
        return nullptr;
    }
    // An operation begins to use device memory of which find() or the device has just said this.
    Hold hold(const Location& location, std::uint64_t losses) {
        if (!location.on_device() || location.buffer_id == 0) return 0;
        Entry* free = nullptr;
        for (Entry& entry : entries_) {
            if (entry.operations == 0) {
                if (free == nullptr) free = &entry;
            } else if (entry.location.buffer_id == location.buffer_id) {
                free = &entry;
                break;
            }
        }
        if (free == nullptr) return 0;
        if (free->operations == 0 || free->losses != losses)
            *free = {location, losses, free->operations};
        ++free->operations;
        ++holds_;
        return static_cast<Hold>(free - entries_.data() + 1);
    }
    void release(Hold hold) {
        if (hold == 0) return;
        --entries_[hold - 1u].operations;
        --holds_;
    }

  private:
    // What a program sends from and receives into, in an exchange with two neighbours.
    static constexpr std::size_t kAllocations = 4;
    struct Entry {
        Location location;
        std::uint64_t losses = 0;
        std::uint64_t operations = 0;
    };
    std::array<Entry, kAllocations> entries_{};
    std::uint64_t holds_ = 0;
};

}  // namespace gantry::device

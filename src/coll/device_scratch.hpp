// SPDX-License-Identifier: BSD-3-Clause
//
// DeviceScratch: memory of our own on the GPU of a program's buffer, which peers can map
// (GANTRY_DEVICE_SCRATCH bounds it). It goes back at the end of the object.
#pragma once

#include "coll/team.hpp"
#include "device/device.hpp"

#include <utility>

namespace gantry::coll {

class DeviceScratch {
  public:
    DeviceScratch() = default;
    // data() is null where there is none to be had.
    DeviceScratch(const Team& team, const void* like, Bytes bytes)
        : team_(team), memory_(team.context->device.borrow(like, bytes)) {
        // The device must know what it will be asked about.
        if (memory_ == nullptr || team.context->device.classify(memory_, bytes).ok()) return;
        team.context->device.give_back(std::exchange(memory_, nullptr));
    }
    DeviceScratch(DeviceScratch&& other) noexcept
        : team_(other.team_), memory_(std::exchange(other.memory_, nullptr)) {}
    DeviceScratch& operator=(DeviceScratch&& other) noexcept {
        std::swap(team_, other.team_);
        std::swap(memory_, other.memory_);
        return *this;
    }
    // A rank that is lost may write into it still: then nobody gets it again.
    ~DeviceScratch() {
        if (memory_ == nullptr) return;
        for (int rank = 0; rank < team_.group->size(); ++rank)
            if (!team_.messenger->nothing_comes(*team_.group, rank).ok()) return;
        team_.context->device.give_back(memory_);
    }
    std::byte* data() const { return static_cast<std::byte*>(memory_); }

  private:
    Team team_;
    void* memory_ = nullptr;
};

}  // namespace gantry::coll

// SPDX-License-Identifier: BSD-3-Clause
//
// ResidentModel: a copying kernel that stays on a GPU, on the world's clock.
#pragma once

#include "device/residency.hpp"
#include "model/machine.hpp"

#include <algorithm>

namespace gantry::device::fake {

class ResidentModel {
  public:
    ResidentModel(const GpuFacts& facts, Nanoseconds linger) : residency_(facts, linger) {}

    bool possible() const { return residency_.possible(); }
    // Whether it runs, and takes a copy now.
    bool stays(Nanoseconds now) {
        if (ends_ == 0) return false;
        if (now >= ends_) {
            ends_ = 0;
            residency_.ended(copies_, now);
            return false;
        }
        return now >= starts_;
    }
    // When a copy that it takes now has ended. Copies overlap, but for their bytes on the link.
    Nanoseconds copy(Nanoseconds now, Bytes bytes, const model::Gpu& gpu) {
        ++copies_;
        ends_ = std::min(now + residency_.linger(), starts_ + residency_.life());
        link_free_ = std::max(link_free_, now) + gpu.peer.rate.time(bytes);
        return link_free_ + gpu.kernel.resident;
    }
    // A copy goes the usual way: true when a kernel shall stay from now on.
    bool consider(Nanoseconds now, const Neighbours* neighbours) {
        return possible() && !stays(now) && ends_ == 0 && residency_.invest(now, neighbours);
    }
    void launch(Nanoseconds now, const model::Gpu& gpu) {
        starts_ = now + gpu.kernel.latency;
        ends_ = starts_ + residency_.linger();
        copies_ = 0;
    }

  private:
    Residency residency_;
    Nanoseconds starts_ = 0, ends_ = 0;  // 0: there is none
    Nanoseconds link_free_ = 0;
    std::uint64_t copies_ = 0;
};

}  // namespace gantry::device::fake

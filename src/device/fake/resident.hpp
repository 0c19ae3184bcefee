// SPDX-License-Identifier: BSD-3-Clause
//
// ResidentModel: a persistent kernel on a GPU, on the world's clock.
#pragma once

#include "device/device.hpp"
#include "device/residency.hpp"
#include "model/machine.hpp"

#include <algorithm>
#include <array>

namespace gantry::device::fake {

class ResidentModel {
  public:
    ResidentModel(const GpuFacts& facts, Nanoseconds idle_timeout)
        : residency_(facts, idle_timeout) {}

    bool possible() const { return residency_.possible(); }
    bool makes(Ends ends) const { return residency_.makes(ends); }
    bool takes(Ends ends, Copies copies) const { return residency_.takes(ends, copies); }
    // Whether it runs, and takes a copy now.
    bool stays(Nanoseconds now) {
        if (ends_ == 0) return false;
        if (now >= ends_) {
            ends_ = 0;
            residency_.ended(saved_, now);
            return false;
        }
        return now >= starts_;
    }
    // When a copy that it takes now has ended. Copies overlap, but for their bytes on the link.
    Nanoseconds copy(Ends ends, Copies copies, Nanoseconds now, Bytes bytes,
                     const model::Gpu& gpu) {
        saved_ += residency_.saving(ends, copies);
        residency_.took(now);
        ends_ =
            std::min(std::max(ends_, now + residency_.idle_timeout()), starts_ + residency_.life());
        const auto at = [&](const model::CopyCost& link, Nanoseconds latency) {
            Nanoseconds& free = link_free_[static_cast<std::size_t>(ends)];
            free = std::max(free, now) + link.rate.time(bytes);
            return free + latency;
        };
        switch (ends) {
            case Ends::to_host: return at(gpu.d2h, gpu.kernel.resident_out);
            case Ends::from_host: return at(gpu.h2d, gpu.kernel.resident_in);
            case Ends::devices: break;
        }
        return at(gpu.peer, gpu.kernel.resident);
    }
    // Whether it runs, and takes parts of messages that are cut through.
    bool cuts_through(Ends ends, Nanoseconds now) const {
        return now >= starts_ && now < ends_ && residency_.cuts_through(ends);
    }
    // One of them: `piece_end` hears when each piece of it is there.
    template <class PieceEnd>
    void cut_through(Ends ends, Nanoseconds now, const Copy& copy, const model::Gpu& gpu,
                     const PieceEnd& piece_end) {
        const bool out = ends == Ends::to_host;
        if (out || copy.pieces.cut_through)
            saved_ += residency_.saving_of_cut_through(ends, copy.bytes);
        Nanoseconds& free = link_free_[static_cast<std::size_t>(ends)];
        free = std::max(free, now);
        for (Bytes begin = 0; begin < copy.bytes; begin += copy.pieces.size) {
            const Bytes bytes = std::min(copy.pieces.size, copy.bytes - begin);
            free += out ? residency_.takes_to_leave(bytes) : gpu.h2d.rate.time(bytes);
            piece_end(begin, bytes,
                      free + (out ? gpu.kernel.resident_out : gpu.kernel.resident_in));
        }
        residency_.took(free);
        ends_ = std::min(std::max(ends_, free + residency_.idle_timeout()),
                         starts_ + residency_.life());
    }
    bool has_backlog(Nanoseconds now) const {
        return link_free_[static_cast<std::size_t>(Ends::to_host)] - now > kMostBacklog;
    }
    bool cut_through_pays(Bytes bytes) const { return residency_.cut_through_pays(bytes); }
    bool consider_cut_through(Ends ends, Nanoseconds now, Bytes message,
                              const Neighbours* neighbours) {
        return possible() && residency_.cuts_through(ends) && !stays(now) && ends_ == 0 &&
               residency_.invest_in_cut_through(ends, message, now, neighbours);
    }
    // A copy goes the usual way: true when a kernel shall stay from now on.
    bool consider(Ends ends, Copies copies, Nanoseconds now, const Neighbours* neighbours) {
        return possible() && takes(ends, copies) && !stays(now) && ends_ == 0 &&
               residency_.invest(ends, now, neighbours, copies);
    }
    void launch(Nanoseconds now, const model::Gpu& gpu) {
        starts_ = now + gpu.kernel.latency;
        ends_ = starts_ + residency_.idle_timeout();
        saved_ = 0;
    }

  private:
    Residency residency_;
    Nanoseconds starts_ = 0, ends_ = 0;       // 0: there is none
    std::array<Nanoseconds, 3> link_free_{};  // by Ends
    Nanoseconds saved_ = 0;
};

}  // namespace gantry::device::fake

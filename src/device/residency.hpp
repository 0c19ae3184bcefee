// SPDX-License-Identifier: BSD-3-Clause
//
// Residency: when a copying kernel shall stay on a GPU. A copy that such a kernel takes costs no
// call of the driver and ends about twice as soon, but launching one costs the processor a call and
// the program some room on its multiprocessors, and whoever waits for the whole device waits for
// it, too. So it is an investment, the same for every device:
//
//   invest()  a copy went the usual way, close behind another one. What a kernel that stayed had
//             saved is put aside; when that pays for a launch and a part of the time that it stays
//             in vain at its end, one is launched; not where another rank waits for turns of the GPU.
//   ended()   it ends by itself when nothing comes for `linger`, or after kLives times that, so
//             that nobody waits for it for ever. Had it too little to do, the next one must be
//             saved for twice as long, which is forgotten with time; had it enough, the next one
//             comes with the next copy.
#pragma once

#include "device/facts.hpp"
#include "device/neighbours.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace gantry::device {

// The copies that such a kernel can make: between device memories, and between device and host
// memory.
enum class Ends : std::uint8_t { devices, to_host, from_host };

// With host memory; larger ones gain little. From any host memory, through page-locked slots, only
// what the processor copies in no time.
inline constexpr Bytes kMostOfResident = 64 * kKiB, kMostThroughSlots = 32 * kKiB;

class Residency {
  public:
    // `linger`: GANTRY_LINGER; 0: no kernel stays.
    Residency(const GpuFacts& facts, Nanoseconds linger)
        : gpu_(facts.uuid),
          takes_turns_(!facts.mps),
          linger_(linger),
          saving_{saving(facts.kernel_latency, facts.resident_latency),
                  saving(facts.copy_latency, facts.resident_out_latency),
                  saving(facts.copy_in_latency, facts.resident_in_latency)},
          shortest_(2 * facts.kernel_latency),
          base_price_(facts.launch + linger / kWaiting),
          price_(base_price_) {}

    // A kernel that gives up before the first copy can come to it is of no use.
    bool possible() const {
        return linger_ >= shortest_ && linger_ > 0 &&
               std::any_of(saving_.begin(), saving_.end(),
                           [](Nanoseconds saving) { return saving > 0; });
    }
    // What it saves of a copy; 0: such copies go the usual way.
    Nanoseconds saving(Ends ends) const { return saving_[static_cast<std::size_t>(ends)]; }
    Nanoseconds linger() const { return linger_; }
    Nanoseconds life() const { return kLives * linger_; }

    // Whoever shares this GPU waits for kernels of others.
    bool takes_turns() const { return takes_turns_; }

    // `neighbours`: null, nobody is known.
    bool invest(Ends ends, Nanoseconds now, const Neighbours* neighbours) {
        // A neighbour's kernels, and its copies inside the GPU, would wait until ours ends.
        return repays(saving(ends), now) &&
               !(takes_turns_ && neighbours != nullptr && neighbours->use(gpu_));
    }
    // `saved`: by all the copies that it took.
    void ended(Nanoseconds saved, Nanoseconds now) {
        priced_at_ = now;
        const bool repaid = saved >= base_price_;
        price_ = repaid ? base_price_ : std::min(2 * price_, kHighestPrice * base_price_);
        next_at_once_ = repaid;
        saved_ = 0;
    }

  private:
    static Nanoseconds saving(Nanoseconds usual, Nanoseconds resident) {
        return resident > 0 ? std::max<Nanoseconds>(usual - resident, 0) : 0;
    }
    bool repays(Nanoseconds saving, Nanoseconds now) {
        const bool close = last_ > 0 && now - last_ <= linger_;
        last_ = now;
        if (now - priced_at_ >= kForgets) {
            price_ = std::max(price_ / 2, base_price_);
            priced_at_ = now;
        }
        if (std::exchange(next_at_once_, false)) return true;
        saved_ = close ? saved_ + saving : 0;
        if (saved_ < price_) return false;
        saved_ = 0;
        return true;
    }

    static constexpr int kLives = 20;
    static constexpr int kWaiting = 5;  // nobody minds most of that time
    static constexpr int kHighestPrice = 256;
    static constexpr Nanoseconds kForgets = 100 * kMillisecond;  // half of the price

    const Uuid gpu_;
    const bool takes_turns_;
    Nanoseconds linger_;
    std::array<Nanoseconds, 3> saving_;  // of each copy, by Ends
    Nanoseconds shortest_;
    Nanoseconds base_price_, price_;
    Nanoseconds priced_at_ = 0;
    Nanoseconds saved_ = 0;
    Nanoseconds last_ = 0;  // copy
    bool next_at_once_ = false;
};

}  // namespace gantry::device

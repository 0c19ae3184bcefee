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
#include <cstdint>
#include <utility>

namespace gantry::device {

class Residency {
  public:
    // `linger`: GANTRY_LINGER; 0: no kernel stays.
    Residency(const GpuFacts& facts, Nanoseconds linger)
        : gpu_(facts.uuid),
          takes_turns_(!facts.mps),
          linger_(linger),
          saving_(facts.resident_latency > 0 ? facts.kernel_latency - facts.resident_latency : 0),
          shortest_(2 * facts.kernel_latency),
          base_price_(facts.launch + linger / kWaiting),
          price_(base_price_) {}

    // A kernel that gives up before the first copy can come to it is of no use.
    bool possible() const { return linger_ >= shortest_ && linger_ > 0 && saving_ > 0; }
    Nanoseconds linger() const { return linger_; }
    Nanoseconds life() const { return kLives * linger_; }

    // Whoever shares this GPU waits for kernels of others.
    bool takes_turns() const { return takes_turns_; }

    // `neighbours`: null, nobody is known.
    bool invest(Nanoseconds now, const Neighbours* neighbours) {
        // A neighbour's kernels, and its copies inside the GPU, would wait until ours ends.
        return repays(now) && !(takes_turns_ && neighbours != nullptr && neighbours->use(gpu_));
    }
    void ended(std::uint64_t copies, Nanoseconds now) {
        priced_at_ = now;
        const bool repaid = static_cast<Nanoseconds>(copies) * saving_ >= base_price_;
        price_ = repaid ? base_price_ : std::min(2 * price_, kHighestPrice * base_price_);
        next_at_once_ = repaid;
        saved_ = 0;
    }

  private:
    bool repays(Nanoseconds now) {
        const bool close = last_ > 0 && now - last_ <= linger_;
        last_ = now;
        if (now - priced_at_ >= kForgets) {
            price_ = std::max(price_ / 2, base_price_);
            priced_at_ = now;
        }
        if (std::exchange(next_at_once_, false)) return true;
        saved_ = close ? saved_ + saving_ : 0;
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
    Nanoseconds saving_;  // of each copy
    Nanoseconds shortest_;
    Nanoseconds base_price_, price_;
    Nanoseconds priced_at_ = 0;
    Nanoseconds saved_ = 0;
    Nanoseconds last_ = 0;  // copy
    bool next_at_once_ = false;
};

}  // namespace gantry::device

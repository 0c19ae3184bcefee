// SPDX-License-Identifier: BSD-3-Clause
//
// Patience: how many empty polls somebody who waits makes before it offers its processor to others.
// Polling is right while the rank waited for runs elsewhere, and wrong when it needs this very
// processor: the kernel may leave two ranks on one for seconds, and each would then spin in vain,
// for 0.8 ms where a poll asks a socket, before the other can answer. So every yield is a
// measurement. One that came back with what was waited for says that the answer needed our
// processor: the next wait is a quarter as patient. A wait whose yields came back at once says that nobody
// wanted it: back towards the full patience, one step for each wait, however often it yielded. One away for longer than a rank spins was given to a
// program that computes, and waiting for it teaches nothing about our messages.
#pragma once

#include "base/units.hpp"

#include <algorithm>
#include <cstdint>

namespace gantry {

class Patience {
  public:
    // `most` empty polls at most; 0: none ever.
    explicit Patience(std::int64_t most) : most_(most), limit_(most) {}

    // A poll found something.
    void rewarded() {
        empty_polls_ = 0;
        if (served_)
            limit_ /= 4;
        else if (in_vain_)
            limit_ = std::min(most_, limit_ + (most_ + kStepsBack - 1) / kStepsBack);
        served_ = in_vain_ = false;
    }
    // A poll found nothing; true when the processor is to be offered now: then yielded() follows.
    bool exhausted() {
        served_ = false;
        return ++empty_polls_ > limit_;
    }
    // The processor was offered and is back after that time.
    void yielded(Nanoseconds away) {
        served_ = away > kNobody && away < kComputing;
        in_vain_ = in_vain_ || !served_;
    }
    std::int64_t limit() const { return limit_; }

  private:
    static constexpr std::int64_t kStepsBack = 64;
    static constexpr Nanoseconds kNobody = 1500;  // a yield to nobody takes about 400 ns
    static constexpr Nanoseconds kComputing = 2 * kMillisecond;
    std::int64_t most_, limit_;
    std::int64_t empty_polls_ = 0;
    bool served_ = false;   // the last yield let somebody run, for about as long as a rank does
    bool in_vain_ = false;  // some yield of this wait did not
};

}  // namespace gantry

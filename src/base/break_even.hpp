// SPDX-License-Identifier: BSD-3-Clause
//
// BreakEven: when something that costs a price once is worth it. What it would have saved is put aside, each time
// that it is done without; when that covers the price, it is bought. So never more is lost than the price once, and
// what is used a few times never pays it.
//
// What turned out to be in vain is dearer the next time: twice, four times, up to a bound.
#pragma once

#include "base/units.hpp"

#include <algorithm>

namespace gantry {

class BreakEven {
  public:
    void put_aside(Nanoseconds saving) { saved_ += std::max<Nanoseconds>(saving, 0); }
    bool covers(Nanoseconds price) const { return saved_ >= times_dearer_ * price; }
    // It is bought, or what was put aside counts no more.
    void begin_anew() { saved_ = 0; }

    void was_in_vain(std::int64_t most_times_dearer) {
        times_dearer_ = std::min(2 * times_dearer_, most_times_dearer);
    }
    void was_worth_it() { times_dearer_ = 1; }
    // Half of what is dearer.
    void forgive() { times_dearer_ = std::max<std::int64_t>(times_dearer_ / 2, 1); }

  private:
    Nanoseconds saved_ = 0;
    std::int64_t times_dearer_ = 1;
};

}  // namespace gantry

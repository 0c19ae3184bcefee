// SPDX-License-Identifier: BSD-3-Clause
#include "plan/looks.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

// What the other one of two copies and one is expected to take; 0: it cannot be.
Nanoseconds other_way(const Choice& choice) {
    Nanoseconds least = 0;
    for (int i = 0; i < choice.rejected_count; ++i) {
        const Rejected& other = choice.rejected[i];
        if (other.expected == 0 || !are_alternatives(choice.plan.protocol, other.protocol))
            continue;
        least = least == 0 ? other.expected : std::min(least, other.expected);
    }
    return least;
}

}  // namespace

bool Looks::is_due(const Choice& choice) {
    const Nanoseconds taken = choice.plan.expected, other = other_way(choice);
    if (other == 0) return false;
    ++messages_;
    time_ += taken;
    if (messages_ < kMessagesBetween || (other - taken) * kShare > time_) return false;
    messages_ = 0;
    time_ = 0;
    return true;
}

}  // namespace gantry::plan

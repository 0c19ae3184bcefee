// SPDX-License-Identifier: BSD-3-Clause
//
// Looks: of two ways that were measured, the slower one is taken by a message now and then, so that a
// machine whose state changes is noticed. A look costs what the message takes longer than the other way:
//
//     looks <= one message in kMessagesBetween,  what they cost <= 1 / kShare of the time in between
#pragma once

#include "plan/plan.hpp"

namespace gantry::plan {

// Whether one of them copies once, by reading, and the other twice.
inline bool are_alternatives(Protocol first, Protocol second) {
    const auto twice = [](Protocol protocol) {
        return protocol == Protocol::pipeline || protocol == Protocol::eager;
    };
    return (first == Protocol::cma && twice(second)) || (twice(first) && second == Protocol::cma);
}

class Looks {
  public:
    static constexpr std::uint32_t kMessagesBetween = 64;
    static constexpr Nanoseconds kShare = 32;

    // Of a message that is to go as `choice` says: whether it shall go the other way, as
    // choose() has it for Reads::look.
    bool is_due(const Choice& choice);

  private:
    std::uint32_t messages_ = 0;  // since the last look
    Nanoseconds time_ = 0;        // that these were expected to take
};

}  // namespace gantry::plan

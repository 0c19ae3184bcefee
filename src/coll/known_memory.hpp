// SPDX-License-Identifier: BSD-3-Clause
//
// KnownMemory: which memory all ranks of a communicator bring to its blocking collectives, where they lie on
// several nodes. The ranks of a node see that when they meet on their node segment. Ranks of different nodes
// do not meet, and the planner would take all their vectors for host memory. So they tell each other: behind
// the third blocking call, the ninth, and so on, ever more seldom.
//
//     call         1   2   3 tell   4 ... 9 tell
//     planned as   ?   ?   ?        device memory, where all ranks brought nothing else to such calls
//
// It is a guess about costs, alike on all ranks. Every algorithm takes every memory, so a wrong guess costs
// time and nothing else. Nonblocking calls do not use it: they may be planned while ranks tell each other.
#pragma once

#include "plan/coll_limits.hpp"
#include "plan/coll_question.hpp"

#include <cstdint>

namespace gantry::coll {

class KnownMemory {
  public:
    // From now on the ranks tell each other: at the same call on all of them.
    void begin() { next_ = kLimits.first_call; }
    bool begun() const { return next_ != 0; }
    // Counts a blocking call; whether the ranks tell each other behind it.
    bool due() {
        if (next_ == 0 || ++calls_ < next_) [[likely]]
            return false;
        next_ *= kLimits.further;
        return true;
    }

    // What this rank brings to a call.
    void bring(plan::Collective operation, Bytes bytes, bool on_device) {
        may_be_ &= ~((on_device ? kHost : kDevice) << place_of(operation, bytes));
    }
    // What this rank tells: for each kind of call the memories that it may be, two bits.
    std::uint64_t told() const { return may_be_; }
    // What all tell, and'ed.
    void hear(std::uint64_t all);

    plan::CollMemory of(plan::Collective operation, Bytes bytes) const {
        const std::uint64_t known = known_ >> place_of(operation, bytes) & (kHost | kDevice);
        return known == kDevice ? plan::CollMemory::device : plan::CollMemory::unknown;
    }

  private:
    static constexpr std::uint64_t kHost = 1, kDevice = 2;
    // Programs reduce a few numbers in host memory and long vectors in device memory.
    static constexpr plan::KnownMemoryLimits kLimits = plan::kKnownMemoryLimits;
    static int place_of(plan::Collective operation, Bytes bytes) {
        return 4 * static_cast<int>(operation) + (bytes >= kLimits.long_from ? 2 : 0);
    }
    static_assert(4 * plan::kCollectives <= 64);

    std::uint64_t may_be_ = ~std::uint64_t{0};  // of this rank, since it told the others
    std::uint64_t known_ = 0;                   // of all; both bits or none: nothing is known
    std::uint32_t calls_ = 0, next_ = 0;
};

}  // namespace gantry::coll

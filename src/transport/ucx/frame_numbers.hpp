// SPDX-License-Identifier: BSD-3-Clause
//
// FrameNumbers: which frames of a peer have come. Over several rails they come in any order, and once
// more when a rail failed behind them; each is delivered once. Numbers begin with 1 and wrap around.
#pragma once

#include <cstdint>
#include <set>

namespace gantry::transport::ucx {

class FrameNumbers {
  public:
    // False: that frame has come before.
    bool take(std::uint32_t number) {
        const std::uint64_t known = expand(number);
        if (known < next_ || !ahead_.insert(known).second) return false;
        while (!ahead_.empty() && *ahead_.begin() == next_) {
            ahead_.erase(ahead_.begin());
            if (static_cast<std::uint32_t>(++next_) == 0) ++next_;  // 0 is no number
        }
        return true;
    }
    // All with smaller numbers have come.
    std::uint32_t next() const { return static_cast<std::uint32_t>(next_); }
    bool complete() const { return ahead_.empty(); }

  private:
    // A frame is never further from the next one than half of all numbers.
    std::uint64_t expand(std::uint32_t number) const {
        const auto distance = static_cast<std::int32_t>(number - static_cast<std::uint32_t>(next_));
        if (distance < 0 &&
            next_ < static_cast<std::uint64_t>(-static_cast<std::int64_t>(distance)))
            return 0;
        return next_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
    }
    std::uint64_t next_ = 1;
    std::set<std::uint64_t> ahead_;
};

// Whether a frame came before `next`, of the same sender.
inline bool is_before(std::uint32_t number, std::uint32_t next) {
    return static_cast<std::int32_t>(number - next) < 0;
}

}  // namespace gantry::transport::ucx

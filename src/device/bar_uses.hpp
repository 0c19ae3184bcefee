// SPDX-License-Identifier: BSD-3-Clause
//
// BarUses: when a BAR mapping (Device::has_bar_mapping) is worth opening. Like the mapping of
// a peer's memory (plan/p2p_plan.cpp, opening()) it is an investment: once the small messages that
// it would have served have cost as much in copies as opening it, it is opened.
//
// Keys hold a buffer id, which the driver never gives twice; what was forgotten only delays an
// opening.
#pragma once

#include "base/break_even.hpp"
#include "device/facts.hpp"

#include <cstdint>
#include <functional>
#include <unordered_map>

namespace gantry::device {

class BarUses {
  public:
    struct Part {
        std::uint64_t buffer_id = 0;
        std::uint64_t number = 0;  // of its parts that have mappings of their own
        bool operator==(const Part&) const = default;
    };

    // One more message: whether all of them together repay a mapping.
    bool repays(const Part& part, const GpuFacts& gpu) {
        if (uses_.size() >= kRemembered) uses_.clear();
        Uses& uses = uses_[part];
        if (uses.is_refused) return false;
        uses.opening.put_aside(gpu.copy_latency);
        return uses.opening.covers(gpu.bar_open);
    }
    // The driver does not open it: it is not asked again.
    void refuse(const Part& part) { uses_[part].is_refused = true; }
    // It is open, or closed to make room for others: then it has to repay itself again.
    void forget(const Part& part) { uses_.erase(part); }

  private:
    struct Uses {
        BreakEven opening;
        bool is_refused = false;
    };
    static constexpr std::size_t kRemembered = 4096;
    struct Hash {
        std::size_t operator()(const Part& part) const {
            return std::hash<std::uint64_t>()(part.buffer_id * 0x9E3779B97F4A7C15ull + part.number);
        }
    };
    std::unordered_map<Part, Uses, Hash> uses_;
};

}  // namespace gantry::device

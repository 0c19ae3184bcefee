// SPDX-License-Identifier: BSD-3-Clause
//
// A rate or a time that was measured, as one of 255 steps of 9 %. Facts that hold steps are small and
// repeat themselves, so what was planned with them is found again (plan/selection_cache.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace gantry::plan {

using Step = std::uint8_t;  // 0: nothing was measured

inline constexpr int kStepsPerDoubling = 8;
// What moves by no more than that (30 %) counts as what it was: nothing flutters.
inline constexpr int kStillSteps = 3;

// `value` and `unit` in the same unit; `unit` is the smallest that has a step.
inline Step step_of(double value, double unit) {
    const double steps = std::round(std::log2(std::max(value / unit, 1.0)) * kStepsPerDoubling);
    return static_cast<Step>(std::clamp(steps + 1, 1.0, 255.0));
}
inline double value_of(Step step, double unit) {
    return step == 0 ? 0 : unit * std::exp2(static_cast<double>(step - 1) / kStepsPerDoubling);
}
// The step that counts when `measured` is the nearest one and `known` counted so far.
inline Step moved(Step known, Step measured) {
    return known != 0 && std::abs(known - measured) <= kStillSteps ? known : measured;
}

inline constexpr double kRateUnit = 1e6;  // bytes per second
inline constexpr double kTimeUnit = 1;    // nanoseconds

// What ranks of a node have measured of copies between their host memories (transfer/host_reads.hpp).
struct HostRates {
    Step slots = 0;  // out of a slot that another rank has filled
    Step reads = 0;  // out of another rank's memory, through the kernel (Transport::read_memory)
    Step call = 0;   // one such call without its bytes
    double slot_bytes_per_second() const { return value_of(slots, kRateUnit); }
    double read_bytes_per_second() const { return value_of(reads, kRateUnit); }
    double read_latency() const { return value_of(call, kTimeUnit); }
    bool operator==(const HostRates&) const = default;
};

}  // namespace gantry::plan

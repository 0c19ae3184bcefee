// SPDX-License-Identifier: BSD-3-Clause
//
// The two units that Gantry counts in. Bytes are unsigned 64-bit, times are signed 64-bit
// nanoseconds of the engine's clock (real or virtual). They are plain integers, so that models and
// wire formats stay simple; names carry the unit.
#pragma once

#include <cstdint>

namespace gantry {

using Bytes = std::uint64_t;
using Nanoseconds = std::int64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;
inline constexpr Nanoseconds kMicrosecond = 1000;
inline constexpr Nanoseconds kMillisecond = 1000 * kMicrosecond;
inline constexpr Nanoseconds kSecond = 1000 * kMillisecond;

constexpr Bytes divide_up(Bytes bytes, Bytes unit) {
    return (bytes + unit - 1) / unit;
}
constexpr Bytes round_up(Bytes bytes, Bytes unit) {
    return divide_up(bytes, unit) * unit;
}

}  // namespace gantry

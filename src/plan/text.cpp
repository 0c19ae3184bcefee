// SPDX-License-Identifier: BSD-3-Clause
#include "plan/text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gantry::plan {
namespace {

// Three significant digits, and a whole number as one: "64 KiB", "1.45 ms", "128 us".
std::string with_unit(double value, const char* unit) {
    if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, unit);
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
}

}  // namespace

std::string bytes_text(Bytes bytes) {
    const double value = static_cast<double>(bytes);
    if (bytes >= kGiB) return with_unit(value / static_cast<double>(kGiB), "GiB");
    if (bytes >= kMiB) return with_unit(value / static_cast<double>(kMiB), "MiB");
    if (bytes >= kKiB) return with_unit(value / static_cast<double>(kKiB), "KiB");
    return fmt::format("{} B", bytes);
}

std::string time_text(Nanoseconds time) {
    const double value = static_cast<double>(time);
    if (time >= kSecond) return with_unit(value / static_cast<double>(kSecond), "s");
    if (time >= kMillisecond) return with_unit(value / static_cast<double>(kMillisecond), "ms");
    if (time >= kMicrosecond) return with_unit(value / static_cast<double>(kMicrosecond), "us");
    return fmt::format("{} ns", time);
}

}  // namespace gantry::plan

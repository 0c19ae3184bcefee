// SPDX-License-Identifier: BSD-3-Clause
#include "figure.hpp"

#include <fmt/format.h>

namespace gantry::reproduce {

Verdict Figure::verdict() const {
    if (!world.value && !processes.value && !gpu.value) return Verdict::not_shown;
    const double reached = world.value       ? *world.value
                           : processes.value ? *processes.value
                                             : *gpu.value;
    if (least && reached < *least) return Verdict::missed;
    if (most && reached > *most) return Verdict::missed;
    return Verdict::holds;
}

std::string Figure::bound() const {
    if (least && most) return fmt::format("{} to {}", words(unit, least), words(unit, most));
    if (least) return "at least " + words(unit, least);
    if (most) return "at most " + words(unit, most);
    return "";
}

std::string words(Unit unit, const std::optional<double>& value) {
    if (!value) return "-";
    return unit == Unit::lower ? fmt::format("{:.1f} %", 100 * *value)
                               : fmt::format("{:.2f} x", *value);
}

std::string words(Verdict verdict) {
    switch (verdict) {
        case Verdict::holds: return "holds";
        case Verdict::missed: return "MISSED";
        case Verdict::not_shown: return "not shown here";
    }
    return "?";
}

}  // namespace gantry::reproduce

// SPDX-License-Identifier: BSD-3-Clause
#include "figure.hpp"

#include <fmt/format.h>

namespace gantry::reproduce {

Verdict Figure::verdict() const {
    const Ours& ours = world.value ? world : processes.value ? processes : gpu;
    if (!ours.value) return Verdict::not_shown;
    // Of what lies in an interval, what is missed for sure.
    if (least && ours.high.value_or(*ours.value) < *least) return Verdict::missed;
    if (most && ours.low.value_or(*ours.value) > *most) return Verdict::missed;
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

std::string words(Unit unit, const Ours& ours) {
    if (!ours.value) return ours.reason;
    std::string text = words(unit, ours.value);
    if (ours.low && ours.high)
        text += unit == Unit::lower
                    ? fmt::format(" ({:.1f} to {:.1f})", 100 * *ours.low, 100 * *ours.high)
                    : fmt::format(" ({:.2f} to {:.2f})", *ours.low, *ours.high);
    return text;
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

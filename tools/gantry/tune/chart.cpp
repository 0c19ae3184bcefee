// SPDX-License-Identifier: BSD-3-Clause
//
// The measured copies as one SVG: time over size, both logarithmic, and where one kind of copy
// begins to be faster than another. Colours that are legible on light and on dark.
#include "plan/text.hpp"
#include "tune.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gantry::tool {

namespace {

constexpr double kLeft = 80, kTop = 50, kWide = 620, kHigh = 420, kNoteHigh = 18;
constexpr const char* kColours[] = {"#1f78b4", "#e6550d", "#33a02c", "#9467bd", "#d62728",
                                    "#8c6d31", "#17a2b8", "#e377c2", "#7f7f7f"};

struct Axes {
    double first_bytes = 8, last_bytes = 8, first_ns = 1e18, last_ns = 1;
    double x(double bytes) const {
        return kLeft + kWide * std::log(bytes / first_bytes) / std::log(last_bytes / first_bytes);
    }
    double y(double ns) const {
        return kTop + kHigh - kHigh * std::log(ns / first_ns) / std::log(last_ns / first_ns);
    }
};

Axes axes_of(const std::vector<CopyCurve>& curves) {
    Axes axes;
    for (const CopyCurve& curve : curves)
        for (const auto& [bytes, ns] : curve.time_ns) {
            axes.last_bytes = std::max(axes.last_bytes, static_cast<double>(bytes));
            axes.first_ns = std::min(axes.first_ns, std::max(ns, 100.0));
            axes.last_ns = std::max(axes.last_ns, ns);
        }
    axes.last_ns = std::max(axes.last_ns, axes.first_ns * 10);
    axes.last_bytes = std::max(axes.last_bytes, 64.0);
    return axes;
}

double time_at(const CopyCurve& curve, double bytes) {
    for (std::size_t i = 1; i < curve.time_ns.size(); ++i) {
        const auto& [low, low_ns] = curve.time_ns[i - 1];
        const auto& [high, high_ns] = curve.time_ns[i];
        if (bytes > static_cast<double>(high)) continue;
        const double part = std::log(bytes / static_cast<double>(low)) /
                            std::log(static_cast<double>(high) / static_cast<double>(low));
        return low_ns * std::pow(high_ns / low_ns, part);
    }
    return curve.time_ns.empty() ? 0 : curve.time_ns.back().second;
}

// From which size up `second` is the faster one, when it is not at 8 bytes; 0: never.
double crossover(const CopyCurve& first, const CopyCurve& second, double last) {
    if (time_at(second, 8) < time_at(first, 8)) return 0;
    for (double bytes = 16; bytes <= last; bytes *= 1.1)
        if (time_at(second, bytes) < 0.95 * time_at(first, bytes)) return bytes;
    return 0;
}

// Which ends a copy has, however it is made: only such copies are each other's rivals.
std::string ends_of(std::string name) {
    if (name.find("the other device") != std::string::npos) return "the other device";
    if (const auto pageable = name.find("pageable "); pageable != std::string::npos)
        name.erase(pageable, std::string_view("pageable ").size());
    return name.substr(0, name.find(','));
}

// Sentences below the picture: beside it there is no room for them.
std::vector<std::string> crossovers(const std::vector<CopyCurve>& curves, double last) {
    std::vector<std::string> notes;
    for (const CopyCurve& first : curves)
        for (const CopyCurve& second : curves) {
            const double bytes = crossover(first, second, last);
            const bool alike = ends_of(first.name) == ends_of(second.name);
            if (bytes <= 0 || !alike || &first == &second) continue;
            notes.push_back(fmt::format("{} beats {} from {} on", second.name, first.name,
                                        plan::bytes_text(static_cast<Bytes>(bytes))));
        }
    return notes;
}

}  // namespace

std::string chart(const model::Machine& machine, const std::vector<CopyCurve>& curves) {
    const Axes axes = axes_of(curves);
    const std::vector<std::string> notes = crossovers(curves, axes.last_bytes);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 {2}\" "
        "font-family=\"sans-serif\" font-size=\"13\" fill=\"#808080\">\n"
        "<title>Copies on {0}</title>\n"
        "<text x=\"{1}\" y=\"28\" font-size=\"17\">Copies on {0}: time over size</text>\n",
        machine.gpu.name, kLeft, kTop + kHigh + 50 + kNoteHigh * static_cast<double>(notes.size()));
    const auto line = [&](double x1, double y1, double x2, double y2) {
        svg += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#808080\" "
            "stroke-opacity=\"0.35\"/>\n",
            x1, y1, x2, y2);
    };
    for (Bytes bytes = 8; static_cast<double>(bytes) <= axes.last_bytes; bytes *= 8) {
        const double x = axes.x(static_cast<double>(bytes));
        line(x, kTop, x, kTop + kHigh);
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x,
                           kTop + kHigh + 20, plan::bytes_text(bytes));
    }
    for (double ns = 1e2; ns <= axes.last_ns; ns *= 10) {
        if (ns < axes.first_ns) continue;
        line(kLeft, axes.y(ns), kLeft + kWide, axes.y(ns));
        svg +=
            fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                        kLeft - 8, axes.y(ns) + 4, plan::time_text(static_cast<Nanoseconds>(ns)));
    }
    double y = kTop + 10;
    for (std::size_t i = 0; i < curves.size(); ++i) {
        const char* colour = kColours[i % std::size(kColours)];
        std::string points;
        for (const auto& [bytes, ns] : curves[i].time_ns)
            points += fmt::format("{:.1f},{:.1f} ", axes.x(static_cast<double>(bytes)),
                                  axes.y(std::max(ns, axes.first_ns)));
        svg += fmt::format(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points,
            colour);
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n",
                           kLeft + kWide + 14, y, colour, curves[i].name);
        y += 20;
    }
    y = kTop + kHigh + 50;
    for (const std::string& note : notes) {
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\">{}</text>\n", kLeft, y,
                           note);
        y += kNoteHigh;
    }
    return svg + "</svg>\n";
}

}  // namespace gantry::tool

// SPDX-License-Identifier: BSD-3-Clause
#include "chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gantry::bench {
namespace {

constexpr double kLeft = 70, kTop = 40, kWide = 520, kHigh = 300, kRight = 190;
constexpr const char* kColours[] = {"#1f78b4", "#e6550d", "#33a02c", "#9467bd",
                                    "#d62728", "#8c6d31", "#17a2b8", "#e377c2"};

struct Axis {
    double low = 1e300, high = -1e300;
    Scale scale = Scale::logarithmic;

    void take(double value) {
        if (scale == Scale::logarithmic && value <= 0) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    void widen() {
        if (low > high) low = high = 1;
        if (scale == Scale::linear) {
            low = std::min(low, 0.);
            if (high <= low) high = low + 1;
        } else if (high <= low) {
            high = low * 2;
        }
    }
    // 0 to 1.
    double at(double value) const {
        if (scale == Scale::linear) return (value - low) / (high - low);
        return std::log(std::max(value, low) / low) / std::log(high / low);
    }
    std::vector<double> ticks(double base) const {
        std::vector<double> all;
        if (scale == Scale::linear) {
            const double step = std::pow(10, std::floor(std::log10((high - low) / 2)));
            for (double value = std::ceil(low / step) * step; value <= high * 1.0001; value += step)
                all.push_back(value);
        } else {
            for (double value = std::pow(base, std::floor(std::log(low) / std::log(base)));
                 value <= high * 1.0001; value *= base)
                if (value >= low * 0.9999) all.push_back(value);
        }
        // No more than eight, evenly left out.
        const std::size_t every = all.size() / 9 + 1;
        std::vector<double> kept;
        for (std::size_t i = 0; i < all.size(); i += every)
            kept.push_back(all[i]);
        return kept;
    }
};

std::string frame(const Chart& chart, const Axis& x, const Axis& y) {
    std::string text;
    for (const double value : x.ticks(2)) {
        const double at = kLeft + kWide * x.at(value);
        text += fmt::format(
            "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#808080\" "
            "stroke-opacity=\"0.2\"/><text x=\"{0:.1f}\" y=\"{3}\" "
            "text-anchor=\"middle\">{4}</text>\n",
            at, kTop, kTop + kHigh, kTop + kHigh + 18,
            chart.x_sizes == Sizes::bytes ? size_words(value) : fmt::format("{:.4g}", value));
    }
    for (const double value : y.ticks(10)) {
        const double at = kTop + kHigh - kHigh * y.at(value);
        text += fmt::format(
            "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#808080\" "
            "stroke-opacity=\"0.2\"/><text x=\"{3}\" y=\"{4:.1f}\" "
            "text-anchor=\"end\">{5:.7g}</text>\n",
            kLeft, kLeft + kWide, at, kLeft - 8, at + 4, value);
    }
    text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                        kLeft + kWide / 2, kTop + kHigh + 38, escaped(chart.x));
    text += fmt::format(
        "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        kTop + kHigh / 2, escaped(chart.y));
    return text;
}

}  // namespace

std::string size_words(double bytes) {
    for (const auto& [unit, word] :
         {std::pair{1073741824., "G"}, std::pair{1048576., "M"}, std::pair{1024., "K"}})
        if (bytes >= unit) return fmt::format("{:.4g}{}", bytes / unit, word);
    return fmt::format("{:.4g}", bytes);
}

std::string escaped(const std::string& text) {
    std::string safe;
    for (const char each : text) {
        if (each == '&')
            safe += "&amp;";
        else if (each == '<')
            safe += "&lt;";
        else if (each == '>')
            safe += "&gt;";
        else if (each == '"')
            safe += "&quot;";
        else
            safe += each;
    }
    return safe;
}

std::string svg(const Chart& chart) {
    Axis x, y;
    y.scale = chart.y_scale;
    for (const Curve& curve : chart.curves)
        for (const Point& point : curve.points) {
            x.take(point.x);
            y.take(point.y);
            if (point.high > 0) y.take(point.low), y.take(point.high);
        }
    x.widen();
    y.widen();
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\" "
        "font-size=\"12\" fill=\"#808080\">\n<title>{}</title>\n<text x=\"{}\" y=\"22\" "
        "font-size=\"15\">{}</text>\n",
        kLeft + kWide + kRight, kTop + kHigh + 50, escaped(chart.title), kLeft,
        escaped(chart.title));
    text += frame(chart, x, y);
    const auto place = [&](double px, double py) {
        return fmt::format("{:.1f},{:.1f} ", kLeft + kWide * x.at(px),
                           kTop + kHigh - kHigh * y.at(py));
    };
    for (std::size_t c = 0; c < chart.curves.size(); ++c) {
        const Curve& curve = chart.curves[c];
        const char* colour = kColours[c % std::size(kColours)];
        std::string line, band, dots;
        for (const Point& point : curve.points) {
            line += place(point.x, point.y);
            dots +=
                fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>",
                            kLeft + kWide * x.at(point.x), kTop + kHigh - kHigh * y.at(point.y));
            if (point.high > 0) band += place(point.x, point.high);
        }
        for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point)
            if (point->high > 0) band += place(point->x, point->low);
        text += fmt::format(
            "<g fill=\"{0}\" stroke=\"none\"><polygon fill-opacity=\"0.2\" points=\"{1}\"/>{2}"
            "<polyline fill=\"none\" stroke=\"{0}\" stroke-width=\"1.8\" points=\"{3}\"/>"
            "<text x=\"{4}\" y=\"{5}\">{6}</text></g>\n",
            colour, band, dots, line, kLeft + kWide + 12, kTop + 14 + 18 * static_cast<double>(c),
            escaped(curve.name));
    }
    double words_at = kTop + 12;  // each on a line of its own: marks may lie close to each other
    for (const Mark& mark : chart.marks) {
        text += fmt::format(
            "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#808080\" "
            "stroke-dasharray=\"4 3\"/><text x=\"{0:.1f}\" y=\"{3}\" dx=\"4\">{4}</text>\n",
            kLeft + kWide * x.at(mark.x), kTop, kTop + kHigh, words_at, escaped(mark.words));
        words_at += 14;
    }
    return text + "</svg>\n";
}

std::string stacked(const std::vector<std::string>& charts) {
    constexpr double kWidth = kLeft + kWide + kRight, kOne = kTop + kHigh + 50;
    std::string inside;
    double y = 0;
    for (const std::string& each : charts) {
        if (each.empty()) continue;
        // A picture inside another needs its place and size.
        inside += fmt::format("<svg y=\"{}\" width=\"{}\" height=\"{}\" {}", y, kWidth, kOne,
                              each.substr(std::string_view("<svg ").size()));
        y += kOne;
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\">\n{}</svg>\n", kWidth, y,
        inside);
}

std::string bars(const std::string& title, const std::vector<Bar>& all) {
    constexpr double kName = 230, kLong = 330, kRow = 22;
    double most = 1e-12;
    for (const Bar& bar : all)
        most = std::max(most, std::abs(bar.value));
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\" "
        "font-size=\"12\" fill=\"#808080\">\n<title>{}</title>\n",
        kName + kLong + 130, kRow * static_cast<double>(all.size()) + 8, escaped(title));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double y = 4 + kRow * static_cast<double>(i);
        const double width = std::max(1., kLong * std::abs(all[i].value) / most);
        text += fmt::format(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{}\" y=\"{}\" "
            "width=\"{:.1f}\" height=\"14\" fill=\"{}\"/><text x=\"{:.1f}\" y=\"{}\">{}</text>\n",
            kName - 8, y + 12, escaped(all[i].name), kName, y, width,
            kColours[i % std::size(kColours)], kName + width + 6, y + 12, escaped(all[i].words));
    }
    return text + "</svg>\n";
}

}  // namespace gantry::bench

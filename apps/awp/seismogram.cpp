// SPDX-License-Identifier: BSD-3-Clause
#include "seismogram.hpp"

#include "../common/mistake.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace gantry::apps::awp {
namespace {

constexpr int kWidth = 720, kPanel = 130, kMargin = 50;

double largest(const std::vector<double> (&components)[kVelocities]) {
    double most = 0;
    for (const std::vector<double>& values : components)
        for (const double value : values)
            most = std::max(most, std::abs(value));
    return most;
}

std::string line_of(const Seismogram& seismogram, const std::vector<double>& values, double middle,
                    double most, const char* style) {
    std::string points;
    const double span = std::max(seismogram.times.back() - seismogram.times.front(), 1e-300);
    for (std::size_t n = 0; n < values.size(); ++n) {
        char point[64];
        std::snprintf(point, sizeof point, "%.1f,%.1f ",
                      kMargin + (kWidth - kMargin - 10) *
                                    (seismogram.times[n] - seismogram.times.front()) / span,
                      middle - 0.45 * kPanel * values[n] / most);
        points += point;
    }
    return "<polyline fill=\"none\" " + std::string(style) + " points=\"" + points + "\"/>\n";
}

std::string svg_of(const Seismogram& seismogram) {
    const double most = std::max({largest(seismogram.exact), largest(seismogram.computed), 1e-300});
    const int height = kVelocities * kPanel + 40;
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                      std::to_string(kWidth) + "\" height=\"" + std::to_string(height) +
                      "\" font-family=\"sans-serif\" font-size=\"13\">\n"
                      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    for (int c = 0; c < kVelocities; ++c) {
        const double middle = kPanel * (c + 0.5);
        svg += "<text x=\"8\" y=\"" + std::to_string(static_cast<int>(middle) + 4) + "\">" +
               "uvw"[c] + "</text>\n";
        svg += line_of(seismogram, seismogram.exact[c], middle, most,
                       "stroke=\"#d62728\" stroke-width=\"4\" stroke-opacity=\"0.45\"");
        svg += line_of(seismogram, seismogram.computed[c], middle, most,
                       "stroke=\"#1f3b70\" stroke-width=\"1.2\"");
    }
    char words[256];
    std::snprintf(words, sizeof words,
                  "<text x=\"%d\" y=\"%d\">%.2f s to %.2f s; largest %.3g m/s; computed (thin) and "
                  "exact (wide)</text>\n</svg>\n",
                  kMargin, height - 14, seismogram.times.front(), seismogram.times.back(), most);
    return svg + words;
}

std::string csv_of(const Seismogram& seismogram) {
    std::string csv = "time,u,v,w,u_exact,v_exact,w_exact\n";
    for (std::size_t n = 0; n < seismogram.times.size(); ++n) {
        char row[256];
        std::snprintf(row, sizeof row, "%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", seismogram.times[n],
                      seismogram.computed[0][n], seismogram.computed[1][n],
                      seismogram.computed[2][n], seismogram.exact[0][n], seismogram.exact[1][n],
                      seismogram.exact[2][n]);
        csv += row;
    }
    return csv;
}

}  // namespace

double Seismogram::misfit() const {
    double difference = 0, size = 0;
    for (int c = 0; c < kVelocities; ++c)
        for (std::size_t n = 0; n < times.size(); ++n) {
            const double d = computed[c][n] - exact[c][n];
            difference += d * d;
            size += exact[c][n] * exact[c][n];
        }
    return std::sqrt(difference / std::max(size, 1e-300));
}

double Seismogram::peak_ratio() const {
    return largest(computed) / std::max(largest(exact), 1e-300);
}

Seismogram seismogram_of(const Earth& earth, const Place& receiver, const float* trace, Whole first,
                         Whole steps) {
    Seismogram seismogram;
    for (Whole n = 0; n < steps; ++n) {
        const double time = (static_cast<double>(first + n) + 0.5) * earth.dt;
        seismogram.times.push_back(time);
        for (int c = 0; c < kVelocities; ++c) {
            seismogram.computed[c].push_back(static_cast<double>(trace[c * steps + n]));
            seismogram.exact[c].push_back(exact_velocity(earth, receiver, c, time));
        }
    }
    return seismogram;
}

void write_seismogram(const std::string& path, const Seismogram& seismogram) {
    const bool table = path.ends_with(".csv");
    const std::string words = table ? csv_of(seismogram) : svg_of(seismogram);
    std::FILE* out = std::fopen(path.c_str(), "w");
    const bool whole =
        out != nullptr && std::fwrite(words.data(), 1, words.size(), out) == words.size();
    if ((out != nullptr && std::fclose(out) != 0) || !whole)
        throw Failure("cannot write the seismogram " + path + ": " + std::strerror(errno));
}

}  // namespace gantry::apps::awp

// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures as SVG: curves with bands over a logarithmic axis, and bars. Plain text without anything from
// elsewhere, in colours that are legible on light and on dark.
#pragma once

#include <string>
#include <vector>

namespace gantry::bench {

struct Point {
    double x = 0, y = 0;
    double low = 0, high = 0;  // around y; both 0: not known
};
struct Curve {
    std::string name;
    std::vector<Point> points;
};
// A place of the x axis that is worth a line, as where two curves cross.
struct Mark {
    double x = 0;
    std::string words;
};
enum class Scale { linear, logarithmic };
enum class Sizes { bytes, numbers };  // how x is written

struct Chart {
    std::string title, x, y;
    Scale y_scale = Scale::logarithmic;
    Sizes x_sizes = Sizes::bytes;
    std::vector<Curve> curves;
    std::vector<Mark> marks;
};
std::string svg(const Chart& chart);
// Charts one below the other, as one picture; empty ones are left out.
std::string stacked(const std::vector<std::string>& charts);

struct Bar {
    std::string name;
    double value = 0;
    std::string words;  // beside it
};
std::string bars(const std::string& title, const std::vector<Bar>& all);

// "64K"; numbers as they are.
std::string size_words(double bytes);
// Text inside of SVG or HTML.
std::string escaped(const std::string& text);

}  // namespace gantry::bench

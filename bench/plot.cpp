// SPDX-License-Identifier: BSD-3-Clause
#include "plot.hpp"

#include "tools/command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gantry::bench {
namespace {

using nlohmann::json;

struct Read {
    std::string title, unit;
    bool smaller_is_better = true;
    std::vector<Curve> curves;
};

Curve& curve_of(Read& read, const std::string& name) {
    const auto found = std::ranges::find(read.curves, name, &Curve::name);
    if (found != read.curves.end()) return *found;
    read.curves.push_back({name, {}});
    return read.curves.back();
}

double number(const json& from, const char* key) {
    return from.contains(key) && from[key].is_number() ? from[key].get<double>() : 0;
}

// A table of messages or one-sided operations: one document.
void take_table(Read& read, const json& document, const std::string& label) {
    read.title = document.value("benchmark", "") + " " + document.value("placement", "");
    read.unit = document.value("unit", "us");
    read.smaller_is_better = document.value("smaller_is_better", true);
    for (const json& row : document["rows"])
        for (const json& way : row["ways"])
            curve_of(read, way.value("name", "?") + label)
                .points.push_back({number(row, "bytes"), number(way, "value"), number(way, "low"),
                                   number(way, "high")});
}

// Collectives: a document a line.
void take_line(Read& read, const json& line, const std::string& label) {
    read.title = fmt::format("{} {}, {} ranks", line.value("benchmark", ""),
                             line.value("placement", ""), line.value("ranks", 0));
    read.unit = "us";
    curve_of(read, line.value("way", "?") + label)
        .points.push_back(
            {number(line, "bytes"), number(line, "us"), number(line, "low"), number(line, "high")});
}

// An empty answer, or what is wrong with the file.
std::string take_file(Read& read, const std::string& file, bool labelled) {
    std::ifstream in(file);
    if (!in) return file + " cannot be read";
    std::stringstream all;
    all << in.rdbuf();
    const std::string label =
        labelled ? " (" + std::filesystem::path(file).stem().string() + ")" : std::string();
    const json document = json::parse(all.str(), nullptr, false);
    if (document.is_object() && document.contains("rows")) {
        take_table(read, document, label);
        return "";
    }
    bool any = false;
    for (std::string line; std::getline(all, line);) {
        const json one = json::parse(line, nullptr, false);
        if (!one.is_object() || !one.contains("way") || !one.contains("us")) continue;
        take_line(read, one, label);
        any = true;
    }
    return any ? "" : file + " holds nothing that gantry-bench prints with --json";
}

const Point* at(const Curve& curve, double x) {
    const auto found = std::ranges::find(curve.points, x, &Point::x);
    return found != curve.points.end() ? &*found : nullptr;
}

Chart ratios(const Read& read) {
    Chart chart{read.title + ": how many times better is " + read.curves[0].name,
                "bytes",
                "times",
                Scale::linear,
                Sizes::bytes,
                {},
                {}};
    for (std::size_t c = 1; c < read.curves.size(); ++c) {
        Curve ratio{read.curves[c].name, {}};
        for (const Point& point : read.curves[c].points) {
            const Point* first = at(read.curves[0], point.x);
            if (first == nullptr || first->y <= 0 || point.y <= 0) continue;
            const double times = point.y / first->y;
            ratio.points.push_back({point.x, read.smaller_is_better ? times : 1 / times});
        }
        chart.curves.push_back(ratio);
    }
    return chart;
}

}  // namespace

std::vector<Crossing> crossings(const std::vector<Curve>& curves, bool smaller_is_better) {
    std::vector<Crossing> all;
    for (std::size_t a = 0; a < curves.size(); ++a)
        for (std::size_t b = a + 1; b < curves.size(); ++b) {
            double last_x = 0, last = 0;
            for (const Point& point : curves[a].points) {
                const Point* other = at(curves[b], point.x);
                if (other == nullptr || point.y <= 0 || other->y <= 0 || point.x <= 0) continue;
                // Above 0: curve a is the better one.
                const double lead = std::log(other->y / point.y) * (smaller_is_better ? 1 : -1);
                if (last * lead < 0) {
                    const double part = last / (last - lead);
                    const double x = last_x * std::pow(point.x / last_x, part);
                    const bool a_was_better = last > 0;
                    all.push_back(
                        {curves[a_was_better ? a : b].name, curves[a_was_better ? b : a].name, x});
                }
                if (lead != 0) {
                    last = lead;
                    last_x = point.x;
                }
            }
        }
    return all;
}

int plot(int argc, char** argv) {
    CLI::App app("what gantry-bench printed with --json, as a picture (SVG)", "gantry-bench plot");
    std::vector<std::string> files;
    std::string output = "plot.svg";
    app.add_option("files", files,
                   "several: beside each other, the first way of the first file is compared with")
        ->required();
    app.add_option("-o,--output", output, "where to")->capture_default_str();
    app.failure_message(command_line::mistake);
    try {
        app.parse(argc - 1, argv + 1);
    } catch (const CLI::ParseError& end) {
        return command_line::exit_code(app, end);
    }
    Read read;
    for (const std::string& file : files)
        if (const std::string wrong = take_file(read, file, files.size() > 1); !wrong.empty()) {
            fmt::print(stderr, "gantry-bench plot: {}\n", wrong);
            return 2;
        }
    Chart chart{read.title, "bytes", read.unit, Scale::logarithmic, Sizes::bytes, read.curves, {}};
    for (const Crossing& each : crossings(read.curves, read.smaller_is_better)) {
        const std::string size = size_words(std::round(each.bytes));
        fmt::print("from {} on {} is better than {}\n", size, each.after, each.before);
        chart.marks.push_back({each.bytes, size});
    }
    std::ofstream out(output);
    out << stacked({svg(chart), read.curves.size() > 1 ? svg(ratios(read)) : std::string()});
    out.close();
    if (!out) {
        fmt::print(stderr, "gantry-bench plot: writing {} failed\n", output);
        return 2;
    }
    return 0;
}

}  // namespace gantry::bench

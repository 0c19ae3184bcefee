// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include "job.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>

namespace gantry::bench {
namespace {

std::string block_text(Bytes block) {
    return block % kKiB == 0 && block > 0 ? fmt::format("{}K", block / kKiB)
                                          : fmt::format("{}", block);
}

// Every way's median in the unit; low and high in order of value.
struct Value {
    double value, low, high;
};
Value value_of(const Figure& figure, const Unit& unit, const Plan& plan) {
    Value value{unit.value(figure.seconds.value, plan), unit.value(figure.seconds.low, plan),
                unit.value(figure.seconds.high, plan)};
    if (value.low > value.high) std::swap(value.low, value.high);
    return value;
}

// Two decimals up to 10,000; beyond, they would only fill the columns (messages a second).
std::string number_text(double value) {
    return fmt::format("{:.{}f}", value, value < 10000 ? 2 : 0);
}

}  // namespace

std::string placement_text(const Options& options) {
    char mine[256] = "", other[256] = "";
    std::string text(1, static_cast<char>(options.placement[side()]));
    if (driver().started())
        text += fmt::format(" (GPU {}, {})", driver().gpu(), driver().gpu_name());
    std::strncpy(mine, text.c_str(), sizeof mine - 1);
    MPI_Sendrecv(mine, sizeof mine, MPI_CHAR, peer(), 0, other, sizeof other, MPI_CHAR, peer(), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return fmt::format("rank 0: {}, rank 1: {}", first() ? mine : other, first() ? other : mine);
}

Report::Report(const Options& options, Unit unit, std::string timed)
    : options_(options), unit_(unit), timed_(std::move(timed)) {
    const std::string placement = placement_text(options);
    if (!first() || options.json) {
        timed_ = fmt::format("{}; {}", placement, timed_);
        return;
    }
    fmt::print("# gantry-bench {}, {}\n# {}\n# {}\n", name(options.benchmark), library_text(),
               placement, timed_);
    if (options.busy) fmt::print("# The GPU of the second rank of each pair is kept busy\n");
    fmt::print("# Medians with their 95 % intervals; {}\n",
               options.validate ? "every byte of every message is checked, outside the time"
                                : "data is NOT checked");
}

void Report::heading(const std::vector<Figure>& figures) {
    std::string text = fmt::format("{:<10}", "# Size");
    for (const Figure& figure : figures) {
        text += fmt::format("{:>22}{:>18}", fmt::format("{} ({})", figure.way, unit_.name), "95 %");
        if (figure.way == "user-pipelined") text += fmt::format("{:>7}", "block");
        if (&figure != &figures[0]) text += fmt::format("{:>8}", "ratio");
    }
    if (figures.size() > 1) fmt::print("# ratio: how many times better {} is\n", figures[0].way);
    fmt::print("{}\n", text);
}

void Report::add(const Plan& plan, const std::vector<Figure>& figures) {
    if (!first()) return;
    const double ours = value_of(figures[0], unit_, plan).value;
    if (options_.json) {
        nlohmann::ordered_json row = {{"bytes", plan.bytes},
                                      {"messages", plan.messages},
                                      {"ways", nlohmann::ordered_json::array()}};
        for (const Figure& figure : figures) {
            const Value value = value_of(figure, unit_, plan);
            nlohmann::ordered_json way = {{"name", figure.way},
                                          {"value", value.value},
                                          {"low", value.low},
                                          {"high", value.high},
                                          {"samples", figure.seconds.samples}};
            if (figure.block != 0) way["block"] = figure.block;
            row["ways"].push_back(way);
        }
        add_row(row.dump());
        return;
    }
    if (!begun_) heading(figures);
    begun_ = true;
    std::string text = fmt::format("{:<10}", plan.bytes);
    for (const Figure& figure : figures) {
        const Value value = value_of(figure, unit_, plan);
        text += fmt::format("{:>22}{:>18}", number_text(value.value),
                            fmt::format("{}-{}", number_text(value.low), number_text(value.high)));
        if (figure.way == "user-pipelined") text += fmt::format("{:>7}", block_text(figure.block));
        if (&figure != &figures[0])
            text += fmt::format("{:>8.2f}",
                                unit_.smaller_is_better ? value.value / ours : ours / value.value);
    }
    fmt::print("{}\n", text);
    std::fflush(stdout);
}

void Report::add_row(const std::string& json) {
    rows_ += (rows_.empty() ? "" : ",") + json;
}

void Report::end() {
    if (!first() || !options_.json) return;
    nlohmann::ordered_json document = {
        {"benchmark", name(options_.benchmark)},
        {"library", library_text()},
        {"unit", unit_.name},
        {"smaller_is_better", unit_.smaller_is_better},
        {"timed", timed_},
        {"validated", options_.validate},
        {"placement", std::string{static_cast<char>(options_.placement[0]),
                                  static_cast<char>(options_.placement[1])}},
        {"pairs", pairs()},
        {"busy", options_.busy},
        {"gpus", options_.gpus}};
    if (is_one_sided(options_.benchmark)) {
        document["measure"] = name(options_.measure);
        document["sync"] = name(options_.sync);
        document["window"] = name(options_.window_kind);
    }
    document["rows"] = nlohmann::ordered_json::parse("[" + rows_ + "]");
    fmt::print("{}\n", document.dump(2));
}

}  // namespace gantry::bench

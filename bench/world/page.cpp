// SPDX-License-Identifier: BSD-3-Clause
//
// The figures as a table of text, as JSON, and as one page that needs nothing from elsewhere.
#include "figure.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gantry::reproduce {
namespace {

std::string published(const Figure& figure) {
    if (!figure.published) return "chart lost";
    return words(figure.unit, figure.published) + (figure.verified ? "" : " *");
}

std::string stories(const Figure& figure) {
    std::string text = figure.note;
    const auto add = [&text](const char* where, const Ours& ours) {
        if (!ours.story.empty())
            text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", where, ours.story);
    };
    add("world", figure.world);
    add("processes", figure.processes);
    add("GPU", figure.gpu);
    return text;
}

}  // namespace

void print_table(const Evidence& evidence) {
    fmt::print(
        "Published figures and ours, as ratios. 'n %' is how much less time than the baseline, 'n "
        "x' how many times "
        "it.\n*: remembered, not verified. World: the simulated world (virtual time, repeats "
        "exactly); "
        "processes: real ones of this machine on the simulated GPU, with the interval of "
        "the median.\n\n");
    fmt::print("{:>3}  {:<58}{:>11}{:>18}  {:<24}{:<10}{:>9}  {}\n", "row", "claim", "published",
               "world", "processes", "GPU", "ideal", "verdict");
    for (const Figure& figure : evidence.figures) {
        fmt::print("{:>3}  {:<58}{:>11}{:>18}  {:<24}{:<10}{:>9}  {}{}\n", figure.row, figure.claim,
                   published(figure), words(figure.unit, figure.world),
                   words(figure.unit, figure.processes), words(figure.unit, figure.gpu),
                   words(figure.unit, figure.ideal), words(figure.verdict()),
                   figure.bound().empty() ? "" : ": " + figure.bound());
        fmt::print("{:>5}{}; beside {}\n", "", figure.setting, figure.baseline);
        if (const std::string why = stories(figure); !why.empty()) fmt::print("{:>5}{}\n", "", why);
    }
}

std::string json_of(const Evidence& evidence) {
    using nlohmann::json;
    json all = json::array();
    const auto number = [](const std::optional<double>& value) {
        return value ? json(*value) : json();
    };
    for (const Figure& figure : evidence.figures)
        all.push_back({{"row", figure.row},
                       {"claim", figure.claim},
                       {"setting", figure.setting},
                       {"baseline", figure.baseline},
                       {"unit", figure.unit == Unit::lower ? "lower, of 1" : "times"},
                       {"published", number(figure.published)},
                       {"verified", figure.verified},
                       {"world", number(figure.world.value)},
                       {"processes", number(figure.processes.value)},
                       {"processes_low", number(figure.processes.low)},
                       {"processes_high", number(figure.processes.high)},
                       {"processes_cell", words(figure.unit, figure.processes)},
                       {"gpu", number(figure.gpu.value)},
                       {"ideal", number(figure.ideal)},
                       {"bound", figure.bound()},
                       {"verdict", words(figure.verdict())},
                       {"note", stories(figure)}});
    return all.dump(1);
}

std::string page_of(const Evidence& evidence) {
    using bench::escaped;
    std::string page =
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Published figures and "
        "Gantry</title>\n"
        "<style>body{font:14px sans-serif;max-width:1100px;margin:2em auto;padding:0 "
        "1em;color-scheme:light "
        "dark}table{border-collapse:collapse;width:100%}td,th{padding:.3em .6em;border-bottom:1px "
        "solid "
        "#8884;text-align:right;vertical-align:top}td:nth-child(2),th:nth-child(2),td:last-child{"
        "text-align:left}"
        ".small{color:#808080;font-size:12px}.missed{color:#d62728;font-weight:bold}svg{max-width:"
        "820px}</style>\n"
        "<h1>Published figures and Gantry</h1>\n<p>Ratios. <b>n&nbsp;%</b>: so much less time than "
        "the baseline; "
        "<b>n&nbsp;x</b>: so many times it. * remembered, not verified. World: the simulated "
        "world, virtual time. "
        "Processes: real ones on the simulated "
        "GPU.</p>\n<table><tr><th>row<th>claim<th>published<th>world<th>"
        "processes<th>GPU<th>ideal<th>verdict</tr>\n";
    for (const Figure& figure : evidence.figures)
        page += fmt::format(
            "<tr><td>{}<td>{}<div class=\"small\">{}; beside {}</div><div "
            "class=\"small\">{}</div><td>{}<td>{}<td>{}"
            "<td>{}<td>{}<td class=\"{}\">{}<div class=\"small\">{}</div></tr>\n",
            figure.row, escaped(figure.claim), escaped(figure.setting), escaped(figure.baseline),
            escaped(stories(figure)), published(figure), words(figure.unit, figure.world),
            words(figure.unit, figure.processes), words(figure.unit, figure.gpu),
            words(figure.unit, figure.ideal), figure.verdict() == Verdict::missed ? "missed" : "",
            words(figure.verdict()), figure.bound());
    page += "</table>\n<h2>Bars</h2>\n";
    for (const Figure& figure : evidence.figures) {
        std::vector<bench::Bar> bars;
        const auto add = [&](const char* name, const std::optional<double>& value) {
            if (value) bars.push_back({name, *value, words(figure.unit, value)});
        };
        add("published", figure.published);
        add("world", figure.world.value);
        add("processes", figure.processes.value);
        add("GPU", figure.gpu.value);
        add("ideal", figure.ideal);
        if (bars.empty()) continue;
        page += fmt::format("<h3>{}: {}</h3><div class=\"small\">{}</div>\n{}", figure.row,
                            escaped(figure.claim), escaped(figure.setting),
                            bench::bars(figure.claim, bars));
    }
    page += "<h2>Curves</h2>\n";
    for (const std::string& picture : evidence.pictures)
        page += picture;
    return page + "</html>\n";
}

}  // namespace gantry::reproduce

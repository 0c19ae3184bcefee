// SPDX-License-Identifier: BSD-3-Clause
//
// gantry info: the parameter table (base/params.def) with today's values, and what Gantry counts
// (base/counters.def): the variables of MPI_T. Its markdown form is the page docs/tuning.md.
#include "commands.hpp"

#include "answer.hpp"
#include "base/config.hpp"
#include "base/counters.hpp"
#include "plan/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace gantry::tool {
namespace {

// Values as people write them: "64K", "20us".
std::string shown(const config::Parameter& parameter, const std::string& value) {
    if (value.empty()) return "(empty)";
    if (parameter.type == "Bytes" && value != "0") return plan::bytes_text(std::stoull(value));
    if (parameter.type == "Nanoseconds") return plan::time_text(std::stoll(value));
    return value;
}

std::string markdown() {
    std::string text =
        "# Parameters\n\n"
        "Every parameter of Gantry, with its default. Nothing needs to be set; `gantry info` "
        "prints the values in force. This page is\n"
        "written by `gantry info --markdown` from `src/base/params.def`.\n\n"
        "Bytes accept `65536`, `64K` and `4M`; times accept `500ns`, `20us`, `1ms` and `2s`; "
        "switches accept `on` and `off`.\n\n"
        "| variable | kind | default | meaning |\n|---|---|---|---|\n";
    const config::Config defaults;
    for (const config::Parameter& parameter : config::parameters())
        text += fmt::format("| `{}` | {} | {} | {} |\n", parameter.variable, parameter.type,
                            shown(parameter, config::value_text(defaults, parameter.name)),
                            parameter.sentence);
    text +=
        "\n## Counters\n\n"
        "What Gantry counts, as performance variables of MPI_T. Those whose names begin with "
        "`comm_` are of one communicator.\n\n"
        "| variable | class | meaning |\n|---|---|---|\n";
    for (const CounterRow& row : counter_rows())
        text += fmt::format("| `{}` | {} | {} |\n", row.name, name(row.kind), row.sentence);
    return text;
}

std::string origin(const config::Parameter& parameter) {
    return config::environment(std::string(parameter.variable).c_str()) ? "environment" : "default";
}

std::string as_json(const config::Config& current) {
    nlohmann::ordered_json document = {{"version", GANTRY_VERSION},
                                       {"build", GANTRY_BUILD},
                                       {"parameters", nlohmann::ordered_json::array()}};
    for (const config::Parameter& parameter : config::parameters())
        document["parameters"].push_back(
            {{"name", parameter.name},
             {"variable", parameter.variable},
             {"type", parameter.type},
             {"value", config::value_text(current, parameter.name)},
             {"default", config::value_text(config::Config{}, parameter.name)},
             {"from", origin(parameter)},
             {"sentence", parameter.sentence}});
    document["counters"] = nlohmann::ordered_json::array();
    for (const CounterRow& row : counter_rows())
        document["counters"].push_back(
            {{"name", row.name}, {"class", name(row.kind)}, {"sentence", row.sentence}});
    return document.dump(2) + "\n";
}

std::string as_text(const config::Config& current) {
    std::size_t widest_name = 0, widest_value = 0;
    for (const config::Parameter& parameter : config::parameters()) {
        widest_name = std::max(widest_name, parameter.variable.size());
        widest_value = std::max(
            widest_value, shown(parameter, config::value_text(current, parameter.name)).size());
    }
    std::string text = fmt::format("Gantry {} ({}), MPI 5.0 ABI\n\n", GANTRY_VERSION, GANTRY_BUILD);
    for (const config::Parameter& parameter : config::parameters())
        text += fmt::format("{:<{}}  {:<{}}  {:<11}  {}\n", parameter.variable, widest_name,
                            shown(parameter, config::value_text(current, parameter.name)),
                            widest_value, origin(parameter), parameter.sentence);
    text += "\nCounted, and read by MPI_T:\n\n";
    std::size_t widest_counter = 0;
    for (const CounterRow& row : counter_rows())
        widest_counter = std::max(widest_counter, row.name.size());
    for (const CounterRow& row : counter_rows())
        text += fmt::format("{:<{}}  {:<13}  {}\n", row.name, widest_counter, name(row.kind),
                            row.sentence);
    return text;
}

int check(const std::string& file, const std::string& page) {
    std::ifstream in(file);
    std::stringstream contents;
    contents << in.rdbuf();
    if (in && contents.str() == page) return 0;
    fmt::print(stderr,
               "{} is not what `gantry info --markdown` writes today; write it again: gantry info "
               "--markdown > {}\n",
               file, file);
    return 1;
}

}  // namespace

int info(Format format, const std::string& check_file) {
    if (format == Format::markdown) {
        const std::string page = markdown();
        if (!check_file.empty()) return check(check_file, page);
        answer("{}", page);
        return 0;
    }
    Result<config::Config> current = config::from_environment();
    if (!current.ok()) {
        fmt::print(stderr, "gantry: {}\n", current.status().text());
        return 1;
    }
    answer("{}", format == Format::json ? as_json(current.value()) : as_text(current.value()));
    return 0;
}

}  // namespace gantry::tool

// SPDX-License-Identifier: BSD-3-Clause
//
// gantry doctor: one line per thing looked at, with a remedy where one is needed. Exit status 1
// when something is broken; a missing GPU or network is a note, since Gantry works without.
#include "commands.hpp"

#include "answer.hpp"
#include "base/config.hpp"
#include "checks.hpp"
#include "model/machine.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::tool {
namespace {

const char* word(Verdict verdict) {
    switch (verdict) {
        case Verdict::good: return "ok";
        case Verdict::note: return "note";
        case Verdict::bad: return "BAD";
    }
    return "?";
}

// GANTRY_* variables that are set although nothing of Gantry reads them: often misspelt.
std::vector<std::string> unread_variables() {
    constexpr std::string_view kOfTheWrappers[] = {"GANTRY_CC", "GANTRY_CXX"};
    std::vector<std::string> unread;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        std::string_view name = *variable;
        name = name.substr(0, name.find('='));
        if (name.starts_with("GANTRY_") &&
            std::ranges::find(kOfTheWrappers, name) == std::end(kOfTheWrappers) &&
            !std::ranges::count(config::parameters(), name, &config::Parameter::variable))
            unread.emplace_back(name);
    }
    return unread;
}

// What is set, and whether it can be read.
Check parameters(config::Config& config) {
    Result<config::Config> current = config::from_environment();
    if (!current.ok())
        return {"parameters", Verdict::bad, std::string(current.status().text()),
                "correct or unset that variable; gantry info lists them all"};
    config = *current;
    std::string changed;
    for (const config::Parameter& parameter : config::parameters())
        if (config::environment(std::string(parameter.variable).c_str()))
            changed += fmt::format("{}{}={}", changed.empty() ? "" : ", ", parameter.variable,
                                   config::value_text(current.value(), parameter.name));
    if (!current->machine.empty())
        if (Result<model::Machine> machine = model::load(current->machine); !machine.ok())
            return {"parameters", Verdict::bad, std::string(machine.status().text()),
                    "GANTRY_MACHINE takes a file that gantry tune wrote, or a built-in name"};
    if (!current->cuda)
        return {"parameters", Verdict::note, changed,
                "GANTRY_CUDA=off: every pointer is taken for host memory"};
    return {"parameters", Verdict::good, changed.empty() ? "all defaults" : changed, ""};
}

}  // namespace

int doctor(Format format) {
    config::Config config;
    std::vector<Check> checks = {parameters(config)};
    if (const std::vector<std::string> unread = unread_variables(); !unread.empty())
        checks.push_back({"variables", Verdict::note,
                          fmt::format("nothing reads {}", fmt::join(unread, ", ")),
                          "misspelt? gantry info lists the parameters"});
    for (Check& check : machine_checks())
        checks.push_back(std::move(check));
    for (Check& check : launcher_checks())
        checks.push_back(std::move(check));
    for (Check& check : device_checks(config))
        checks.push_back(std::move(check));
    const auto broken = std::ranges::count(checks, Verdict::bad, &Check::verdict);

    if (format == Format::json) {
        nlohmann::ordered_json rows = nlohmann::ordered_json::array();
        for (const Check& check : checks)
            rows.push_back({{"subject", check.subject},
                            {"verdict", word(check.verdict)},
                            {"found", check.found},
                            {"remedy", check.remedy}});
        answer("{}\n",
               nlohmann::ordered_json{
                   {"version", GANTRY_VERSION}, {"broken", broken}, {"checks", rows}}
                   .dump(2));
        return broken > 0 ? 1 : 0;
    }
    for (const Check& check : checks) {
        answer("{:<5} {:<15} {}\n", word(check.verdict), check.subject, check.found);
        if (!check.remedy.empty()) answer("{:<21} -> {}\n", "", check.remedy);
    }
    answer("\n{}\n",
           broken == 0 ? "Gantry is ready to run here."
                       : fmt::format("{} thing{} to mend first.", broken, broken == 1 ? "" : "s"));
    return broken > 0 ? 1 : 0;
}

}  // namespace gantry::tool

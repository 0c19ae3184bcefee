// SPDX-License-Identifier: BSD-3-Clause
#include "model/tuned.hpp"

#include "base/config.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace gantry::model {
namespace {

bool same_letters(char left, char right) {
    return std::tolower(static_cast<unsigned char>(left)) ==
           std::tolower(static_cast<unsigned char>(right));
}

}  // namespace

std::string slug(std::string_view gpu_name) {
    std::string text;
    for (const char letter : gpu_name) {
        const auto plain = static_cast<unsigned char>(letter);
        if (std::isalnum(plain) != 0)
            text += static_cast<char>(std::tolower(plain));
        else if (!text.empty() && text.back() != '-')
            text += '-';
    }
    while (text.ends_with('-'))
        text.pop_back();
    return text;
}

std::string tuned_file(std::string_view gpu_name) {
    std::string folder(config::environment("XDG_CONFIG_HOME").value_or(std::string{}));
    if (folder.empty()) {
        const std::string home(config::environment("HOME").value_or(std::string{}));
        if (home.empty()) return {};
        folder = home + "/.config";
    }
    return folder + "/gantry/machines/" + slug(gpu_name) + ".json";
}

Result<Machine> built_in_for(std::string_view gpu_name) {
    for (std::string_view built_in : built_in_machines()) {
        Result<Machine> machine = load(built_in);
        if (!machine.ok()) continue;
        const std::string& described = machine->gpu.name;
        const std::string model_name = described.substr(described.rfind(' ') + 1);
        const auto at = std::search(gpu_name.begin(), gpu_name.end(), model_name.begin(),
                                    model_name.end(), same_letters);
        if (!model_name.empty() && at != gpu_name.end()) return machine;
    }
    return failure(MPI_ERR_ARG, "no built-in description is of a GPU called \"{}\"", gpu_name);
}

namespace {

Description find(std::string_view asked_for, const Traits& traits) {
    Description description;
    // False: it was there, and cannot be read.
    const auto take = [&description](Origin origin, std::string_view place) {
        Result<Machine> machine = load(place);
        if (!machine.ok()) {
            if (description.problem.ok()) description.problem = machine.status();
            return false;
        }
        description.machine = *machine;
        description.origin = origin;
        description.place = place;
        return true;
    };
    if (!asked_for.empty() && take(Origin::asked_for, asked_for)) return description;
    if (asked_for.empty()) {
        const std::string tuned = tuned_file(traits.name);
        const bool there = !tuned.empty() && ::access(tuned.c_str(), R_OK) == 0;
        if (there && take(Origin::measured, tuned)) return description;
    }
    Result<Machine> built_in = built_in_for(traits.name);
    if (built_in.ok()) description.place = built_in->name;
    description.origin = built_in.ok() ? Origin::built_in : Origin::estimated;
    description.machine = built_in.ok() ? *built_in : estimate(traits);
    return description;
}

}  // namespace

Description describe(std::string_view asked_for, const Traits& traits) {
    Description description = find(asked_for, traits);
    // An instance of a partitioned GPU is called like the whole one and may have fewer.
    if (description.origin != Origin::asked_for && traits.copy_engines > 0) {
        description.machine.gpu.copy_engines = traits.copy_engines;
        description.machine.gpu_under_mps.copy_engines = traits.copy_engines;
    }
    return description;
}

std::string origin_text(const Description& description) {
    switch (description.origin) {
        case Origin::asked_for: return fmt::format("GANTRY_MACHINE: {}", description.place);
        case Origin::measured:
            return fmt::format("measured by gantry tune ({})", description.place);
        case Origin::built_in: return fmt::format("built in ({})", description.place);
        case Origin::estimated: break;
    }
    return "estimated from its generation and links";
}

}  // namespace gantry::model

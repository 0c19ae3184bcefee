// SPDX-License-Identifier: BSD-3-Clause
//
// The one place that reads environment variables. `Config` has a field for each row of params.def;
// `environment()` serves what launchers set (PMI_FD and the like), which is not ours to document.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::config {

using Text = std::string;
using Integer = std::int64_t;
using Switch = bool;

struct Config {
#define GANTRY_PARAM(type, name, preset, sentence) type name = preset;
#include "base/params.def"
#undef GANTRY_PARAM
};

// A value that was given otherwise than by the environment.
struct Setting {
    std::string_view name;
    std::string value;
};

// Defaults overridden by GANTRY_* variables, and these by `settings`; a value that does not parse is an
// error that names the variable and what it accepts.
Result<Config> from_environment(std::span<const Setting> settings = {});

// One row of params.def, for `gantry info`, MPI_T and the generated docs/tuning.md.
struct Parameter {
    std::string_view name;      // "eager_limit"
    std::string_view variable;  // "GANTRY_EAGER_LIMIT"
    std::string_view type;      // "Bytes", "Integer", "Switch", "Nanoseconds", "Text"
    std::string_view preset;    // the default, as written in params.def
    std::string_view sentence;
    std::string_view words;  // of one that takes a few words: "auto, on or off"
};
std::span<const Parameter> parameters();
// The single words of such a list.
std::vector<std::string_view> split(std::string_view words);
std::string value_text(const Config& config, std::string_view name);
Status set(Config& config, std::string_view name, std::string_view value);

// A launcher's variable, or the value that the user gave it; nothing when unset.
std::optional<std::string> environment(const char* name);

}  // namespace gantry::config

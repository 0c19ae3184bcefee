// SPDX-License-Identifier: BSD-3-Clause
#include "base/config.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>

namespace gantry::config {
namespace {

constexpr std::size_t kLongestName = 48;

// "eager_limit" -> "GANTRY_EAGER_LIMIT", built at compile time so that Parameter can hold views.
struct Variable {
    std::array<char, kLongestName> text{};
    std::size_t length = 0;
    constexpr explicit Variable(std::string_view name) {
        for (char c : std::string_view("GANTRY_"))
            text[length++] = c;
        for (char c : name)
            text[length++] = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    constexpr std::string_view view() const { return {text.data(), length}; }
};

#define GANTRY_PARAM(type, name, preset, sentence) constexpr Variable kVariable_##name(#name);
#include "base/params.def"
#undef GANTRY_PARAM

constexpr Parameter kParameters[] = {
#define GANTRY_WORD(name, preset, words, sentence) \
    {#name, kVariable_##name.view(), "Text", #preset, sentence, words},
#define GANTRY_PARAM(type, name, preset, sentence) \
    {#name, kVariable_##name.view(), #type, #preset, sentence, {}},
#include "base/params.def"
#undef GANTRY_PARAM
};

std::optional<std::uint64_t> number_with_suffix(std::string_view text, std::string_view& suffix) {
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    suffix = text.substr(static_cast<std::size_t>(end - text.data()));
    return value;
}

bool parse_bytes(std::string_view text, Bytes& out) {
    std::string_view suffix;
    auto value = number_with_suffix(text, suffix);
    if (!value) return false;
    if (!suffix.empty() && (suffix.back() == 'B' || suffix.back() == 'b')) suffix.remove_suffix(1);
    if (!suffix.empty() && suffix.back() == 'i') suffix.remove_suffix(1);
    Bytes unit = 1;
    if (suffix == "K" || suffix == "k")
        unit = kKiB;
    else if (suffix == "M" || suffix == "m")
        unit = kMiB;
    else if (suffix == "G" || suffix == "g")
        unit = kGiB;
    else if (!suffix.empty())
        return false;
    if (*value > UINT64_MAX / unit) return false;
    out = *value * unit;
    return true;
}

bool parse_time(std::string_view text, Nanoseconds& out) {
    std::string_view suffix;
    auto value = number_with_suffix(text, suffix);
    if (!value) return false;
    // A bare number is most often meant in seconds; only 0 needs no unit.
    if (suffix.empty() && *value != 0) return false;
    Nanoseconds unit = 1;
    if (suffix == "us")
        unit = kMicrosecond;
    else if (suffix == "ms")
        unit = kMillisecond;
    else if (suffix == "s")
        unit = kSecond;
    else if (!suffix.empty() && suffix != "ns")
        return false;
    if (*value > static_cast<std::uint64_t>(INT64_MAX / unit)) return false;
    out = static_cast<Nanoseconds>(*value) * unit;
    return true;
}

bool parse(std::string_view text, Integer& out, std::string_view kind) {
    if (kind == "Nanoseconds") return parse_time(text, out);
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size();
}
bool parse(std::string_view text, Bytes& out, std::string_view) {
    return parse_bytes(text, out);
}
bool parse(std::string_view text, Switch& out, std::string_view) {
    for (std::string_view yes : {"on", "1", "yes", "true"})
        if (text == yes) return out = true;
    for (std::string_view no : {"off", "0", "no", "false"})
        if (text == no) return !(out = false);
    return false;
}
bool parse(std::string_view text, Text& out, std::string_view) {
    out = text;
    return true;
}

bool is_one_of(std::string_view value, std::string_view words) {
    return std::ranges::count(split(words), value) > 0;
}

std::string_view accepted(std::string_view type) {
    if (type == "Bytes") return "a number of bytes such as 65536, 64K or 4M";
    if (type == "Integer") return "a whole number";
    if (type == "Switch") return "on or off";
    if (type == "Nanoseconds") return "a time such as 500ns, 20us, 1ms or 2s";
    return "text";
}

std::string text_of(const Text& value) {
    return value;
}
std::string text_of(Switch value) {
    return value ? "on" : "off";
}
std::string text_of(Bytes value) {
    return fmt::format("{}", value);
}
std::string text_of(Integer value) {
    return fmt::format("{}", value);
}

// A time is taken with its unit only.
const char* unit_of(std::string_view type) {
    return type == "Nanoseconds" ? "ns" : "";
}

}  // namespace

std::span<const Parameter> parameters() {
    return kParameters;
}

std::vector<std::string_view> split(std::string_view words) {
    std::vector<std::string_view> list;
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find_first_of(", "));
        if (!word.empty() && word != "or") list.push_back(word);
        words.remove_prefix(std::min(std::max<std::size_t>(word.size(), 1), words.size()));
    }
    return list;
}

Status set(Config& config, std::string_view name, std::string_view value) {
#define GANTRY_WORD(field, preset, words, sentence)                                          \
    if (name == #field) {                                                                    \
        if (is_one_of(value, words)) return parse(value, config.field, {}), success();       \
        return failure(MPI_ERR_ARG, "{} is '{}', but it takes {}", kVariable_##field.view(), \
                       value, words);                                                        \
    }
#define GANTRY_LEAST(type, field, preset, least, sentence)                                 \
    if (name == #field) {                                                                  \
        type given = config.field;                                                         \
        if (parse(value, given, #type) && (given == type{preset} || given >= type{least})) \
            return config.field = given, success();                                        \
        return failure(MPI_ERR_ARG, "{} is '{}', but it takes {}, at least {}{}",          \
                       kVariable_##field.view(), value, accepted(#type), least,            \
                       type{preset} < type{least} ? ", or " #preset : "");                 \
    }
#define GANTRY_PARAM(type, field, preset, sentence)                                          \
    if (name == #field) {                                                                    \
        if (parse(value, config.field, #type)) return success();                             \
        return failure(MPI_ERR_ARG, "{} is '{}', but it takes {}", kVariable_##field.view(), \
                       value, accepted(#type));                                              \
    }
#include "base/params.def"
#undef GANTRY_PARAM
    return failure(MPI_ERR_ARG, "there is no parameter '{}'; `gantry info` lists them", name);
}

std::string value_text(const Config& config, std::string_view name) {
#define GANTRY_PARAM(type, field, preset, sentence) \
    if (name == #field) return text_of(config.field) + unit_of(#type);
#include "base/params.def"
#undef GANTRY_PARAM
    return {};
}

Result<Config> from_environment(std::span<const Setting> settings) {
    Config config;
    for (const Parameter& parameter : kParameters) {
        auto value = environment(std::string(parameter.variable).c_str());
        if (value) GANTRY_TRY(set(config, parameter.name, *value));
    }
    for (const Setting& setting : settings)
        GANTRY_TRY(set(config, setting.name, setting.value));
    if (config.host_cell > config.host_pool)
        return failure(
            MPI_ERR_ARG,
            "GANTRY_HOST_CELL is {}, but a cell must fit into GANTRY_HOST_POOL, which is "
            "{}: lower the one or raise the other",
            config.host_cell, config.host_pool);
    return config;
}

std::optional<std::string> environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
}

}  // namespace gantry::config

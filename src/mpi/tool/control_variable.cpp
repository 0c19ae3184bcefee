// SPDX-License-Identifier: BSD-3-Clause
//
// What there is to control.
#include "mpi/tool/control_variable.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/tool/tool.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace tool {
namespace {

// What every user may want to set; the others are for who tunes an application.
constexpr std::string_view kForUsers[] = {"log",       "explain", "explain_file", "progress",
                                          "gpudirect", "machine", "ipc",          "kernels"};
// What one rank may have otherwise than the others; the two sides of a message agree on the rest.
constexpr std::string_view kOfOneRank[] = {
    "log",  "explain",      "explain_file", "eager_limit", "spin", "progress", "progress_awake",
    "rank", "idle_timeout", "share_copies", "hand_over"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::count(names, name) > 0;
}

std::string description(const config::Parameter& parameter) {
    const std::string preset = config::value_text(config::Config{}, parameter.name);
    return fmt::format("{} ({}, default {})", parameter.sentence,
                       parameter.words.empty() ? parameter.type : parameter.words,
                       preset.empty() ? "empty" : preset);
}

}  // namespace

MPI_Datatype type_of(const config::Parameter& parameter) {
    if (parameter.type == "Switch" || !parameter.words.empty()) return MPI_INT;
    if (parameter.type == "Bytes") return MPI_UNSIGNED_LONG_LONG;
    return parameter.type == "Text" ? MPI_CHAR : MPI_COUNT;
}

int count_of(const config::Parameter& parameter) {
    return type_of(parameter) == MPI_CHAR ? kTextRoom : 1;
}

Result<config::Config> parameters_now() {
    const Process& p = process();
    if (p.engine != nullptr) return p.engine->config();
    return config::from_environment(p.settings);
}

}  // namespace tool

Status t_cvar_get_num(int* num_cvar) {
    *num_cvar = static_cast<int>(config::parameters().size());
    return success();
}

Status t_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity,
                       MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                       int* bind, int* scope) {
    const auto all = config::parameters();
    if (cvar_index < 0 || static_cast<std::size_t>(cvar_index) >= all.size())
        return tool::no_such_index("cvar_index", cvar_index, all.size());
    const config::Parameter& parameter = all[static_cast<std::size_t>(cvar_index)];
    const tool::Enumeration* words = tool::the_tool().enumerations.of(parameter);
    tool::give_text(parameter.variable, name, name_len);
    tool::give(verbosity, tool::is_among(tool::kForUsers, parameter.name)
                              ? MPI_T_VERBOSITY_USER_BASIC
                              : MPI_T_VERBOSITY_TUNER_BASIC);
    tool::give(datatype, tool::type_of(parameter));
    tool::give(enumtype, words != nullptr ? words->handle() : MPI_T_ENUM_NULL);
    tool::give_text(tool::description(parameter), desc, desc_len);
    tool::give(bind, MPI_T_BIND_NO_OBJECT);
    tool::give(scope, tool::is_among(tool::kOfOneRank, parameter.name) ? MPI_T_SCOPE_LOCAL
                                                                       : MPI_T_SCOPE_ALL_EQ);
    return success();
}

Status t_cvar_get_index(const char* name, int* cvar_index) {
    const auto all = config::parameters();
    const auto found = std::ranges::find(all, name, &config::Parameter::variable);
    if (found == all.end()) return tool::no_such_name("control variable", name);
    *cvar_index = static_cast<int>(found - all.begin());
    return success();
}

}  // namespace gantry::mpi

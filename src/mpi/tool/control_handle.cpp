// SPDX-License-Identifier: BSD-3-Clause
//
// Reading and writing control variables. A value travels as its text, as it would in the environment, so
// that what is written is judged by the same rules.
#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"
#include "mpi/tool/tool.hpp"

#include "base/log.hpp"

#include <charconv>
#include <cstring>

namespace gantry::mpi {
namespace tool {
namespace {

ControlHandle* find(MPI_T_cvar_handle handle) {
    return the_tool().controls.find(handle);
}

template <class Number>
void put_number(std::string_view text, void* to) {
    Number number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    std::memcpy(to, &number, sizeof number);
}

template <class Number>
Number number_at(const void* from) {
    Number number = 0;
    std::memcpy(&number, from, sizeof number);
    return number;
}

// The value at `from` as the environment would say it.
Result<std::string> text_at(const config::Parameter& parameter, const void* from) {
    if (const Enumeration* words = the_tool().enumerations.of(parameter)) {
        const int value = number_at<int>(from);
        if (value < 0 || static_cast<std::size_t>(value) >= words->items.size())
            return failure(MPI_T_ERR_INVALID, "{} has no value {}: its enumeration has {} items",
                           parameter.variable, value, words->items.size());
        return std::string(words->items[static_cast<std::size_t>(value)]);
    }
    if (parameter.type == "Bytes") return fmt::format("{}", number_at<Bytes>(from));
    if (parameter.type == "Integer") return fmt::format("{}", number_at<MPI_Count>(from));
    if (parameter.type == "Nanoseconds") return fmt::format("{}ns", number_at<MPI_Count>(from));
    const char* text = static_cast<const char*>(from);
    return std::string(text, strnlen(text, kTextRoom - 1));
}

// For the engine that MPI_Init will make.
Status write_early(const config::Parameter& parameter, std::string value) {
    std::vector<config::Setting> settings = process().settings;
    std::erase_if(settings, [&](const auto& each) { return each.name == parameter.name; });
    settings.push_back({parameter.name, std::move(value)});
    Result<config::Config> all = config::from_environment(settings);
    if (!all.ok()) return std::move(all).status();
    process().settings = std::move(settings);
    if (const auto level = log::level_named(all->log)) log::set_level(*level);
    return success();
}

}  // namespace
}  // namespace tool

Status t_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
    const auto all = config::parameters();
    if (cvar_index < 0 || static_cast<std::size_t>(cvar_index) >= all.size())
        return tool::no_such_index("cvar_index", cvar_index, all.size());
    const config::Parameter& parameter = all[static_cast<std::size_t>(cvar_index)];
    tool::ControlHandle* made = tool::the_tool().controls.create(tool::ControlHandle{&parameter});
    if (made == nullptr)
        return failure(MPI_T_ERR_OUT_OF_HANDLES, "out of memory for a handle of {}",
                       parameter.variable);
    *handle = reinterpret_cast<MPI_T_cvar_handle>(made);
    *count = tool::count_of(parameter);
    return success();
}

Status t_cvar_handle_free(MPI_T_cvar_handle* handle) {
    tool::ControlHandle* found = tool::find(*handle);
    if (found == nullptr) return tool::no_such_handle("handle");
    tool::the_tool().controls.destroy(found);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return success();
}

Status t_cvar_read(MPI_T_cvar_handle handle, void* buf) {
    const tool::ControlHandle* found = tool::find(handle);
    if (found == nullptr) return tool::no_such_handle("handle");
    const config::Parameter& parameter = *found->parameter;
    Result<config::Config> config = tool::parameters_now();
    if (!config.ok()) return failure(MPI_T_ERR_INVALID, "{}", config.status().text());
    const std::string value = config::value_text(*config, parameter.name);
    if (const tool::Enumeration* words = tool::the_tool().enumerations.of(parameter)) {
        const int number = words->value_of(value).value_or(0);
        std::memcpy(buf, &number, sizeof number);
    } else if (parameter.type == "Bytes") {
        tool::put_number<Bytes>(value, buf);
    } else if (parameter.type == "Text") {
        copy_text(value, static_cast<char*>(buf), tool::kTextRoom);
    } else {
        tool::put_number<MPI_Count>(value, buf);
    }
    return success();
}

Status t_cvar_write(MPI_T_cvar_handle handle, const void* buf) {
    const tool::ControlHandle* found = tool::find(handle);
    if (found == nullptr) return tool::no_such_handle("handle");
    const config::Parameter& parameter = *found->parameter;
    Result<std::string> value = tool::text_at(parameter, buf);
    if (!value.ok()) return std::move(value).status();
    Engine* engine = process().engine.get();
    Status written = engine != nullptr ? engine->set_parameter(parameter.name, *value)
                                       : tool::write_early(parameter, std::move(*value));
    if (written.ok() || written.error_class() == MPI_T_ERR_CVAR_SET_NOT_NOW) return written;
    return failure(MPI_T_ERR_INVALID, "{}", written.text());
}

}  // namespace gantry::mpi

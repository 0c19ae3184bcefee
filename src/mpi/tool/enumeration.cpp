// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/tool/enumeration.hpp"

#include "mpi/bodies.hpp"
#include "mpi/tool/tool.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace tool {

Enumerations::Enumerations() {
    all_.push_back({"phase", {"before", "running", "finalized"}});
    all_.push_back({"switch", {"off", "on"}});
    for (const config::Parameter& parameter : config::parameters())
        if (!parameter.words.empty())
            all_.push_back({parameter.name, config::split(parameter.words)});
}

std::optional<int> Enumeration::value_of(std::string_view item) const {
    const auto found = std::ranges::find(items, item);
    if (found == items.end()) return std::nullopt;
    return static_cast<int>(found - items.begin());
}

const Enumeration* Enumerations::of(const config::Parameter& parameter) const {
    const bool is_switch = parameter.type == "Switch";
    if (!is_switch && parameter.words.empty()) return nullptr;
    const std::string_view name = is_switch ? "switch" : parameter.name;
    return &*std::ranges::find(all_, name, &Enumeration::name);
}

const Enumeration* Enumerations::find(MPI_T_enum handle) const {
    for (const Enumeration& each : all_)
        if (each.handle() == handle) return &each;
    return nullptr;
}

}  // namespace tool

Status t_enum_get_info(MPI_T_enum enumtype, int* num, char* name, int* name_len) {
    const tool::Enumeration* found = tool::the_tool().enumerations.find(enumtype);
    if (found == nullptr) return tool::no_such_handle("enumtype");
    tool::give(num, static_cast<int>(found->items.size()));
    tool::give_text(found->name, name, name_len);
    return success();
}

Status t_enum_get_item(MPI_T_enum enumtype, int index, int* value, char* name, int* name_len) {
    const tool::Enumeration* found = tool::the_tool().enumerations.find(enumtype);
    if (found == nullptr) return tool::no_such_handle("enumtype");
    if (index < 0 || static_cast<std::size_t>(index) >= found->items.size())
        return tool::no_such_index("index", index, found->items.size());
    tool::give(value, index);
    tool::give_text(found->items[static_cast<std::size_t>(index)], name, name_len);
    return success();
}

}  // namespace gantry::mpi

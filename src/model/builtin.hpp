// SPDX-License-Identifier: BSD-3-Clause
//
// The text of machines/*.json and networks/*.json inside the program; cmake/machines.cmake writes
// the definition.
#pragma once

#include <span>
#include <string_view>

namespace gantry::model {

struct BuiltIn {
    std::string_view name;
    std::string_view json;
};
std::span<const BuiltIn> built_in_texts();
std::span<const BuiltIn> built_in_network_texts();

}  // namespace gantry::model

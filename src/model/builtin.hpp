// SPDX-License-Identifier: BSD-3-Clause
//
// The text of machines/*.json inside the program; cmake/machines.cmake writes the definition.
#pragma once

#include <span>
#include <string_view>

namespace gantry::model {

struct BuiltInMachine {
    std::string_view name;
    std::string_view json;
};
std::span<const BuiltInMachine> built_in_texts();

}  // namespace gantry::model

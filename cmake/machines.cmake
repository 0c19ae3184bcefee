# SPDX-License-Identifier: BSD-3-Clause
# Compiles src/model/machines/*.json in: writes the definition of model::built_in_texts(), each file as one raw string.

file(GLOB machines CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/model/machines/*.json)
set(rows "")
foreach(machine ${machines})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${machine})
    get_filename_component(name ${machine} NAME_WE)
    file(READ ${machine} json)
    string(APPEND rows "    {\"${name}\", R\"machine(${json})machine\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/machines.cpp @ONLY CONTENT
"#include \"model/builtin.hpp\"

namespace gantry::model {
namespace {

constexpr BuiltInMachine kMachines[] = {
@rows@};

}  // namespace

std::span<const BuiltInMachine> built_in_texts() { return kMachines; }

}  // namespace gantry::model
")
set_property(GLOBAL APPEND PROPERTY gantry_generated_model ${CMAKE_BINARY_DIR}/generated/machines.cpp)

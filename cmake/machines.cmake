# SPDX-License-Identifier: BSD-3-Clause
# Compiles src/model/machines/*.json and src/model/networks/*.json in: writes the definitions of src/model/builtin.hpp, each file as one raw
# string.

# Sets `rows` to the initialisers of a folder's files.
function(gantry_rows_of folder)
    file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/model/${folder}/*.json)
    set(rows "")
    foreach(file ${files})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
        get_filename_component(name ${file} NAME_WE)
        file(READ ${file} json)
        string(APPEND rows "    {\"${name}\", R\"machine(${json})machine\"},\n")
    endforeach()
    set(${folder} "${rows}" PARENT_SCOPE)
endfunction()
gantry_rows_of(machines)
gantry_rows_of(networks)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/machines.cpp @ONLY CONTENT
"#include \"model/builtin.hpp\"

namespace gantry::model {
namespace {

constexpr BuiltIn kMachines[] = {
@machines@};

constexpr BuiltIn kNetworks[] = {
@networks@};

}  // namespace

std::span<const BuiltIn> built_in_texts() { return kMachines; }
std::span<const BuiltIn> built_in_network_texts() { return kNetworks; }

}  // namespace gantry::model
")
set_property(GLOBAL APPEND PROPERTY gantry_generated_model ${CMAKE_BINARY_DIR}/generated/machines.cpp)

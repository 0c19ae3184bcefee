# SPDX-License-Identifier: BSD-3-Clause
# The helpers that CMakeLists.txt is written in.

set(GANTRY_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
set(GANTRY_LIBRARY_OPTIONS -fno-exceptions -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden)
# More than half of what compiling a test costs is optimising it, which few tests need.
set(GANTRY_TEST_OPTIONS -O0)
# Those in the world compute much, also in the library: of a template that both use the linker takes the test's.
# Coroutines call each other as siblings.
set(GANTRY_WORLD_OPTIONS -O1 -foptimize-sibling-calls)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(GANTRY_WORLD_OPTIONS "")
endif()

# Link options of everything that is installed: the C++ runtime goes into it, so a prefix runs on machines with another one.
# Not with sanitizers: theirs look for the shared runtime when an exception is thrown.
if(GANTRY_SANITIZE)
    set(GANTRY_PORTABLE "")
else()
    # Compiled here, because it is part of the options of every link.
    set(older_systems ${CMAKE_BINARY_DIR}/older_systems.o)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -O2 -fPIC -c ${CMAKE_SOURCE_DIR}/cmake/older_systems.c -o ${older_systems}
                    COMMAND_ERROR_IS_FATAL ANY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/older_systems.c)
    set(GANTRY_PORTABLE -static-libgcc -static-libstdc++ ${older_systems})
endif()

# A layer: static library gantry_NAME from src/NAME/**.cpp; header-only while the folder has no source.
function(gantry_layer name)
    cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "/fake/|/kernels/twins/|/fmt_library.cpp$")
    get_property(generated GLOBAL PROPERTY gantry_generated_${name})
    if(sources OR generated)
        add_library(gantry_${name} STATIC ${sources} ${generated})
        set(scope PUBLIC)
        gantry_precompiled(gantry_${name} library)
    else()
        add_library(gantry_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(gantry_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(gantry_${name} ${scope} ${ARG_DEPENDS})
endfunction()

# The fakes of job, device and transport (src/*/fake/), for tests and the world only: never part of the library.
function(gantry_fakes)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*/fake/*.cpp)
    if(sources)
        add_library(gantry_fakes STATIC ${sources})
        gantry_precompiled(gantry_fakes library)
        target_link_libraries(gantry_fakes PUBLIC gantry_p2p)
    endif()
endfunction()

# {fmt}, of which only the headers are the system's: src/base/fmt_library.cpp compiles the rest once, and a prefix needs no libfmt.
function(gantry_fmt)
    add_library(gantry_fmt STATIC ${CMAKE_SOURCE_DIR}/src/base/fmt_library.cpp)
    target_compile_options(gantry_fmt PRIVATE ${GANTRY_WARNINGS} ${GANTRY_LIBRARY_OPTIONS})
    target_include_directories(gantry_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
endfunction()

function(gantry_add_if_present folder)
    if(EXISTS ${CMAKE_SOURCE_DIR}/${folder}/CMakeLists.txt)
        add_subdirectory(${folder})
    endif()
endfunction()

# libmpi_abi.so.1: everything linked whole, only the names of the export map visible.
function(gantry_library)
    if(NOT TARGET gantry_abi)
        return()
    endif()
    get_target_property(type gantry_abi TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
        return()
    endif()
    file(WRITE ${CMAKE_BINARY_DIR}/empty.cpp "")
    add_library(mpi_abi SHARED ${CMAKE_BINARY_DIR}/empty.cpp)
    target_link_libraries(mpi_abi PRIVATE -Wl,--whole-archive gantry_abi -Wl,--no-whole-archive)
    target_link_options(mpi_abi PRIVATE -Wl,--version-script=${GANTRY_EXPORT_MAP} -Wl,--no-undefined -Wl,-z,noseparate-code
                        ${GANTRY_PORTABLE} -Wl,--gc-sections -Wl,-z,nodelete)
    set_target_properties(mpi_abi PROPERTIES OUTPUT_NAME mpi_abi SOVERSION 1
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
                          LINK_DEPENDS ${GANTRY_EXPORT_MAP})
    install(TARGETS mpi_abi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

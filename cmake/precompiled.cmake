# SPDX-License-Identifier: BSD-3-Clause
# Precompiled headers: what most files include is parsed once for each kind of target instead of once a file, which halves the time of a
# build. Kinds differ in compile options, because a precompiled header serves only files compiled with the options it was made with.
# Each file still includes all that it uses: the tsan preset builds without precompiled headers, so that CI finds a missing include in the library.

set(library_options ${GANTRY_LIBRARY_OPTIONS})
# Never sanitised: the simulated driver speaks to ThreadSanitizer through annotations (sanitizer.hpp), and AddressSanitizer sees its
# copies through memmove. Its thread-local model: two words, so a dlopen finds room; LeakSanitizer trips over the dynamic model.
set(driver_options ${GANTRY_LIBRARY_OPTIONS} -fno-sanitize=all -ftls-model=initial-exec)
set(program_options "")
if(GANTRY_SANITIZE)  # for tests alone
    set(program_options ${GANTRY_TEST_OPTIONS})
endif()
set(case_options ${GANTRY_TEST_OPTIONS})
# As the library is built: with exceptions GCC warns falsely about the frames of coroutines.
set(test_options ${GANTRY_TEST_OPTIONS} -fno-exceptions)
set(world_options ${GANTRY_WORLD_OPTIONS} -fno-exceptions)

set(library_headers <algorithm> <array> <atomic> <cerrno> <charconv> <coroutine> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring>
    <deque> <functional> <map> <memory> <new> <optional> <span> <string> <string_view> <unordered_map> <utility> <vector> <unistd.h>
    <fmt/format.h>)
set(driver_headers ${library_headers})
set(program_headers ${library_headers} <nlohmann/json.hpp>)
set(case_headers ${library_headers})
set(test_headers ${library_headers} <gtest/gtest.h> <gmock/gmock.h>)
set(world_headers ${test_headers})

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ccache asks for it, and for CCACHE_SLOPPINESS=pch_defines,time_macros, which `dev` sets. Without either ccache only compiles.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()

# gantry_compiled_as(TARGET KIND): the warnings and options of a kind.
function(gantry_compiled_as target kind)
    target_compile_options(${target} PRIVATE ${GANTRY_WARNINGS} ${${kind}_options})
    get_target_property(type ${target} TYPE)
    if(kind MATCHES "program|case|test|world" AND NOT type STREQUAL "EXECUTABLE")
        # As CMake compiles what goes into a program, because its files share that precompiled header.
        set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
        target_compile_options(${target} PRIVATE -fPIE)
    endif()
    if(kind MATCHES "test|world")
        # Also what links no GoogleTest shares its definitions.
        target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
    endif()
endfunction()

# gantry_precompiled(TARGET KIND): compiles TARGET as its kind (library, driver, program, case, test, world), with the headers made for that kind.
function(gantry_precompiled target kind)
    if(NOT TARGET precompiled_${kind})
        set(source ${CMAKE_BINARY_DIR}/generated/precompiled_${kind}.cpp)
        file(CONFIGURE OUTPUT ${source} CONTENT "")
        add_library(precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${source})
        gantry_compiled_as(precompiled_${kind} ${kind})
        target_link_libraries(precompiled_${kind} PRIVATE gantry_fmt nlohmann_json::nlohmann_json)
        if(kind MATCHES "test|world")
            target_link_libraries(precompiled_${kind} PRIVATE GTest::gtest GTest::gmock)
        endif()
        target_precompile_headers(precompiled_${kind} PRIVATE ${${kind}_headers})
    endif()
    gantry_compiled_as(${target} ${kind})
    target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
endfunction()

# SPDX-License-Identifier: BSD-3-Clause
# Compiles the kernels in: src/device/kernels/ptx/*.ptx, each as one raw string, and what ptxas makes of it for each major architecture, as
# ELF. The committed PTX is what clang-19 makes of the .cu beside it: `dev ptx` writes it, `dev check kernels` compares. Compiled code is made
# here and not committed: it is ten times as large, changes with each release of ptxas, and takes seconds to make. Where there is no ptxas
# (it comes with the CUDA toolkit, and in the wheel nvidia-cuda-nvcc-cu12), the driver compiles the text on first use.

find_program(GANTRY_PTXAS ptxas HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin
             DOC "compiles the kernels for each GPU architecture; without it the driver does at first use")
# Code for one minor architecture runs on all later ones of the same major one. Each entry: the first that this ptxas knows.
set(architectures "70,75" "80" "90" "100" "120")

# Packs it to a quarter, as the driver unpacks it; it comes with the toolkit alone. Other ways than "speed" are of newer drivers.
get_filename_component(toolkit "${GANTRY_PTXAS}" DIRECTORY)
find_program(GANTRY_FATBINARY fatbinary HINTS ${toolkit} DOC "packs the compiled kernels; without it they take four times as much")
set(pack "")

set(kernels copy_many copy_resident move_rows reduce_integers reduce_pairs reduce_reals)
set(folder ${CMAKE_BINARY_DIR}/generated/cubins)
set(known "")
if(GANTRY_PTXAS)
    file(MAKE_DIRECTORY ${folder})
    file(CONFIGURE OUTPUT ${folder}/none.ptx CONTENT ".version 8.5\n.target sm_70\n.address_size 64\n.visible .entry none()\n{\n    ret;\n}\n")
    foreach(entry ${architectures})
        string(REPLACE "," ";" candidates ${entry})
        foreach(number ${candidates})
            execute_process(COMMAND ${GANTRY_PTXAS} -arch=sm_${number} ${folder}/none.ptx -o ${folder}/none.cubin
                            RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
            if(refused EQUAL 0)
                list(APPEND known ${number})
                break()
            endif()
        endforeach()
    endforeach()
endif()
if(known AND GANTRY_FATBINARY)
    list(GET known -1 number)
    foreach(way "-64;--compress-all;--compress-mode=speed" "-64;--compress-all")
        execute_process(COMMAND ${GANTRY_FATBINARY} ${way} --create=${folder}/none.fatbin --image3=kind=elf,sm=${number},file=${folder}/none.cubin
                        RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
        if(refused EQUAL 0)
            set(pack ${GANTRY_FATBINARY} ${way})
            break()
        endif()
    endforeach()
endif()
if(known)
    list(JOIN known ", " shown)
    message(STATUS "Kernels are compiled for the architectures ${shown} by ${GANTRY_PTXAS}")
else()
    message(STATUS "No ptxas: the driver compiles the kernels on first use")
endif()

set(rows "")
set(images "")
set(cubins "")
foreach(name ${kernels})
    set(ptx ${CMAKE_SOURCE_DIR}/src/device/kernels/ptx/${name}.ptx)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ptx})
    file(READ ${ptx} text)
    # A third of it are comments and indentation.
    string(REGEX REPLACE "[ \t]*//[^\n]*" "" text "${text}")
    string(REGEX REPLACE "\n[ \t\n]*" "\n" text "${text}")
    set(entries "")
    list(LENGTH known count)
    foreach(number ${known})
        set(cubin ${folder}/${name}.${number}.cubin)
        add_custom_command(OUTPUT ${cubin} COMMAND ${GANTRY_PTXAS} -arch=sm_${number} ${ptx} -o ${cubin} DEPENDS ${ptx} VERBATIM)
        if(pack)
            set(file ${folder}/${name}.${number}.fatbin)
            add_custom_command(OUTPUT ${file} COMMAND ${pack} --create=${file} --image3=kind=elf,sm=${number},file=${cubin} DEPENDS ${cubin} VERBATIM)
            set(cubin ${file})
        endif()
        list(APPEND cubins ${cubin})
        math(EXPR major "${number} / 10")
        math(EXPR minor "${number} % 10")
        string(APPEND images "GANTRY_IMAGE(gantry_${name}_${number}, \"${cubin}\")\n")
        string(APPEND entries "Compiled{${major}, ${minor}, gantry_${name}_${number}}, ")
    endforeach()
    string(APPEND rows "Image ${name}() {\n    static constexpr std::array<Compiled, ${count}> kCompiled = {{${entries}}};\n"
           "    return {R\"ptx(${text})ptx\", kCompiled};\n}\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/kernels.cpp @ONLY CONTENT
"#include \"device/kernels/images.hpp\"

#include <array>

// An image lies in the library's read-only data, as the driver wants it: on a multiple of 8 bytes.
#define GANTRY_IMAGE(name, file)                                                                     \\
    asm(\".pushsection .rodata, \\\"a\\\"\\n.balign 64\\n\" #name \":\\n.incbin \\\"\" file \"\\\"\\n.byte 0\\n.popsection\\n\"); \\
    extern \"C\" __attribute__((visibility(\"hidden\"))) const char name[];

@images@
namespace gantry::kernels {

@rows@
}  // namespace gantry::kernels
")
set_source_files_properties(${CMAKE_BINARY_DIR}/generated/kernels.cpp PROPERTIES OBJECT_DEPENDS "${cubins}")
# Also for gantry-bench, in another folder.
add_custom_target(gantry_cubins DEPENDS ${cubins})
set_property(GLOBAL APPEND PROPERTY gantry_generated_device ${CMAKE_BINARY_DIR}/generated/kernels.cpp)

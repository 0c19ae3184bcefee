# SPDX-License-Identifier: BSD-3-Clause
# Compiles src/device/kernels/ptx/*.ptx in, each as one raw string; the driver translates it for its GPU. The committed
# PTX is what clang-19 makes of the .cu beside it: `dev ptx` writes it, `dev check kernels` compares.

set(rows "")
foreach(name copy_many copy_resident move_rows reduce_integers reduce_pairs reduce_reals)
    set(ptx ${CMAKE_SOURCE_DIR}/src/device/kernels/ptx/${name}.ptx)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ptx})
    file(READ ${ptx} text)
    string(APPEND rows "const char* ${name}_ptx() { return R\"ptx(${text})ptx\"; }\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/kernels.cpp @ONLY CONTENT
"#include \"device/kernels/images.hpp\"

namespace gantry::kernels {

@rows@
}  // namespace gantry::kernels
")
set_property(GLOBAL APPEND PROPERTY gantry_generated_device ${CMAKE_BINARY_DIR}/generated/kernels.cpp)

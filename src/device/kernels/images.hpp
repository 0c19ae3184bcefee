// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels: as PTX text (ptx/*.ptx, made by clang-19 from the .cu), which the driver compiles for any
// GPU, and compiled already, for each major architecture that the build's ptxas knows: so that the
// driver compiles nothing in the middle of a program (half a second, where its cache is empty).
// cmake/kernels.cmake writes the definitions. Without ptxas there is the text alone.
#pragma once

#include <span>

namespace gantry::kernels {

struct Compiled {
    int major, minor;   // of the compute capability that it was made for
    const void* image;  // ELF, or a fat binary that holds it packed
};

struct Image {
    const char* ptx;
    std::span<const Compiled> compiled;

    // What runs there: the same major architecture, and none of a later minor one. Null: none.
    const void* compiled_for(int major, int minor) const {
        const void* found = nullptr;
        int best = -1;
        for (const Compiled& each : compiled)
            if (each.major == major && each.minor <= minor && each.minor > best) {
                best = each.minor;
                found = each.image;
            }
        return found;
    }
};

Image copy_many();
Image copy_resident();
Image move_rows();
Image reduce_integers();
Image reduce_pairs();
Image reduce_reals();

}  // namespace gantry::kernels

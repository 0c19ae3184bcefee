// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels and the host say about cells alike. A kernel is written as one function of one cell,
// compiled twice from the same text: by clang-19 for the GPU and by the host's compiler, which makes
// both the host version of the program and the simulated GPU's. Neither contracts a multiplication
// and an addition into one rounding, so all of them compute the same bits.
//
//   padded block    x fastest: place = x + pitch (y + rows z); the halo is part of it, so the first
//                   inner cell of an axis has the halo's width as its coordinate
#pragma once

#ifdef __CUDA__
#include "../../src/device/kernels/dialect.hpp"
// A call would copy the kernel's parameter.
#define APPS_CELL GANTRY_DEVICE __attribute__((always_inline)) inline
#define APPS_UNROLL _Pragma("unroll")
#else
#define APPS_CELL inline
#define APPS_UNROLL _Pragma("GCC unroll 18")
#endif

namespace gantry::apps {

// Every word of a kernel's parameter has 8 bytes: the simulated driver recognises addresses among them.
using Word = unsigned long long;
using Whole = long long;

struct Box {
    Whole lo[3], n[3];
};

// The cells that one launch computes.
inline constexpr int kMostBoxes = 6;
struct Region {
    Whole items = 0;
    Box box[kMostBoxes] = {};
};

struct Cell {
    int x, y, z;
};

// Every box is looked at by its constant index: a kernel copies a parameter that is indexed otherwise.
APPS_CELL Cell cell_of(const Region& region, Whole item) {
    int lo[3] = {0, 0, 0};
    unsigned across = 1, up = 1, at = 0;
    bool found = false;
    APPS_UNROLL
    for (int i = 0; i < kMostBoxes; ++i) {
        const Box& box = region.box[i];
        const Whole inside = box.n[0] * box.n[1] * box.n[2];
        if (!found && item < inside) {
            found = true;
            at = static_cast<unsigned>(item);
            across = static_cast<unsigned>(box.n[0]);
            up = static_cast<unsigned>(box.n[1]);
            for (int axis = 0; axis < 3; ++axis)
                lo[axis] = static_cast<int>(box.lo[axis]);
        }
        item -= inside;
    }
    const unsigned row = at / across, plane = row / up;
    return {lo[0] + static_cast<int>(at - row * across), lo[1] + static_cast<int>(row - plane * up),
            lo[2] + static_cast<int>(plane)};
}

}  // namespace gantry::apps

// All items of a launch, whatever its shape. `work.items()` says how many there are.
#ifdef __CUDA__
#define APPS_KERNEL(name, Work, one)                                                         \
    GANTRY_KERNEL void name(Work work) {                                                     \
        using namespace gantry::kernels;                                                     \
        const gantry::apps::Whole stride = gantry::apps::Whole{blocks()} * threads();        \
        const gantry::apps::Whole items = work.items();                                      \
        for (gantry::apps::Whole item = gantry::apps::Whole{block()} * threads() + thread(); \
             item < items; item += stride)                                                   \
            one(work, item);                                                                 \
    }
#endif

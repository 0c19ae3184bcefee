// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of a block that are computed apart: a shell, whose results others wait for, and the inside.
#pragma once

#include "cells.hpp"

#include <algorithm>

namespace gantry::apps {

inline void add_box(Region& region, const Box& box) {
    const Whole cells = box.n[0] * box.n[1] * box.n[2];
    if (cells <= 0) return;
    for (Box& place : region.box)
        if (place.n[0] * place.n[1] * place.n[2] == 0) {
            place = box;
            region.items += cells;
            return;
        }
}

inline Region whole_of(const Box& box) {
    Region region;
    add_box(region, box);
    return region;
}

// `box` without `thick` cells at both ends of each axis; no cell is left of thin boxes.
inline Box inside_of(const Box& box, const Whole thick[3]) {
    Box inner = box;
    for (int axis = 0; axis < 3; ++axis) {
        inner.lo[axis] += thick[axis];
        inner.n[axis] = std::max<Whole>(0, box.n[axis] - 2 * thick[axis]);
    }
    return inner;
}

// The rest of `box` around `inner`: slabs along the slowest axis, then what remains between them.
inline Region shell_of(const Box& box, const Box& inner) {
    if (inner.n[0] * inner.n[1] * inner.n[2] == 0) return whole_of(box);
    Region region;
    Box rest = box;
    for (int axis = 2; axis >= 0; --axis) {
        Box low = rest, high = rest;
        low.n[axis] = inner.lo[axis] - rest.lo[axis];
        high.lo[axis] = inner.lo[axis] + inner.n[axis];
        high.n[axis] = rest.lo[axis] + rest.n[axis] - high.lo[axis];
        add_box(region, low);
        add_box(region, high);
        rest.lo[axis] = inner.lo[axis];
        rest.n[axis] = inner.n[axis];
    }
    return region;
}

}  // namespace gantry::apps

// SPDX-License-Identifier: BSD-3-Clause
//
// Sums of 64-bit integers, as reductions of these tests make them.
#pragma once

#include "coll/reducer.hpp"

#include <cstdint>

namespace gantry::coll {

using Number = std::int64_t;

inline Reducer sum() {
    Reducer reducer;
    reducer.predefined = layout::reduction(layout::Operation::sum, layout::Element::int64);
    reducer.operation = layout::Operation::sum;
    reducer.element = layout::Element::int64;
    reducer.extent = sizeof(Number);
    return reducer;
}

}  // namespace gantry::coll

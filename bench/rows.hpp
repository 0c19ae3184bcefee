// SPDX-License-Identifier: BSD-3-Clause
//
// Rows: a message as equal blocks, equally far apart (--layout BLOCK:STRIDE), sent with one vector datatype.
// Contiguous where there are none.
#pragma once

#include "base/units.hpp"

namespace gantry::bench {

struct Rows {
    Bytes block = 0, stride = 0;

    bool any() const { return block > 0; }
    Bytes count(Bytes message) const { return any() ? message / block : 1; }
    // From the first byte of a message to its last one.
    Bytes span(Bytes message) const {
        return any() && message > 0 ? (count(message) - 1) * stride + block : message;
    }
};

}  // namespace gantry::bench

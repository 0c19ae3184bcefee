// SPDX-License-Identifier: BSD-3-Clause
//
// Items: the one kind of basic item that all data of an accumulate are made of, and how such items are
// combined. Data travel packed; a pair with padding is spread to what C makes of it before a reduction
// sees it.
#pragma once

#include "base/status.hpp"
#include "layout/layout.hpp"
#include "layout/reduce.hpp"

namespace gantry::rma {

struct Items {
    layout::Element element = layout::Element::none;
    std::uint32_t size = 0;    // packed
    std::uint32_t extent = 0;  // in memory
    bool padded() const { return size != extent; }
};

// Of each element of layout::Element but `none`.
Items items_of(layout::Element element);

// target[i] = operand[i] op target[i], both packed, `bytes` of them. The operation is legal for the
// items (layout::reduction).
Status combine_packed(layout::Operation operation, const Items& items, const std::byte* operand,
                      std::byte* target, Bytes bytes);

}  // namespace gantry::rma

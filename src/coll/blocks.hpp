// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks: the side of a collective that has one block per rank - equal ones, or with counts and
// displacements, or with a datatype each. What the program passed is copied, since a nonblocking
// collective outlives the call.
#pragma once

#include "p2p/request.hpp"

#include <cstdint>
#include <vector>

namespace gantry::coll {

struct Blocks {
    void* address = nullptr;
    std::uint64_t count = 0;  // equal blocks
    const layout::Layout* layout = nullptr;
    std::vector<std::int64_t> counts;         // empty: equal blocks
    std::vector<std::int64_t> displacements;  // in extents of the layout; in bytes with `layouts`
    std::vector<const layout::Layout*> layouts;  // one per rank (the w forms)

    p2p::Buffer of(int rank) const {
        const auto index = static_cast<std::size_t>(rank);
        const layout::Layout* kind = layouts.empty() ? layout : layouts[index];
        std::ptrdiff_t offset = 0;
        if (counts.empty())
            offset = static_cast<std::ptrdiff_t>(count) * rank * kind->extent;
        else
            offset = layouts.empty() ? displacements[index] * kind->extent : displacements[index];
        const std::uint64_t elements =
            counts.empty() ? count : static_cast<std::uint64_t>(counts[index]);
        return {static_cast<std::byte*>(address) + offset, elements, kind};
    }
};

}  // namespace gantry::coll

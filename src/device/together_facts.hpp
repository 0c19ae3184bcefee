// SPDX-License-Identifier: BSD-3-Clause
//
// What a persistent kernel makes together for one operation (cuda/resident_together.cpp): the planner of
// collectives knows by it what costs no launch.
#pragma once

#include "base/units.hpp"

#include <cstdint>

namespace gantry::device {

// A copy takes an item for each so many bytes; more of a copy, or more items in all, are as quick by a launch,
// which has more blocks.
struct TogetherLimits {
    Bytes bytes_of_item = 16 * kKiB, bytes_of_copy = 64 * kKiB;
    Bytes items = 32;
    // A block's threads have so many elements of a reduction at once. A longer vector takes more items, and
    // in place, where it must be one item, its block's time.
    std::uint64_t elements_at_once = 256;
    std::uint64_t elements = 16 * 256, elements_in_place = 4 * 256;
    constexpr bool takes(Bytes each, Bytes copies) const {
        return each <= bytes_of_copy &&
               copies * ((each + bytes_of_item - 1) / bytes_of_item) <= items;
    }
};
inline constexpr TogetherLimits kTogether;

}  // namespace gantry::device

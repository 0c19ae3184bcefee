// SPDX-License-Identifier: BSD-3-Clause
//
// What messages contain: bytes that depend on the size, the sample, the message's place in it and
// the direction, so that old data, another message's data and shifted data are all noticed.
#pragma once

#include "base/units.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace gantry::bench {

struct Pattern {
    Bytes bytes = 0;
    std::uint64_t sample = 0;
    int message = 0;
    int from = 0;
};

void fill(std::byte* memory, const Pattern& pattern);
// Nothing when all is right; else which byte is wrong first, and how many are.
std::optional<std::string> mistake(const std::byte* memory, const Pattern& pattern);

}  // namespace gantry::bench

// SPDX-License-Identifier: BSD-3-Clause
//
// A copy whose stores go past the cache: for data that nobody on this core reads soon. On an H200's
// host it moves 16 GB/s where memcpy falls to 12 once the data leaves the cache.
// Plain memcpy on other processors.
#pragma once

#include "base/units.hpp"

#include <cstddef>

namespace gantry {

void streaming_copy(std::byte* to, const std::byte* from, Bytes bytes);

}  // namespace gantry

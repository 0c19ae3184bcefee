// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes and rows as they are typed. Mistakes are thrown as CLI::ValidationError.
#pragma once

#include "base/units.hpp"
#include "rows.hpp"

#include <string>
#include <vector>

namespace gantry::bench {

// Sizes and ranges, "8,64K:1M".
std::vector<Bytes> sizes_of(const std::string& text);
// All that doubling gives between the two, 0 first if it is asked for.
std::vector<Bytes> doubling(Bytes smallest, Bytes largest);
// "512:4K": rows of 512 bytes, each 4 KiB behind the one before.
Rows rows_of(const std::string& text);

}  // namespace gantry::bench

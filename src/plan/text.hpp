// SPDX-License-Identifier: BSD-3-Clause
//
// How plans and their record speak of sizes and times to people: "256 KiB", "1.45 ms".
#pragma once

#include "base/units.hpp"

#include <string>

namespace gantry::plan {

std::string bytes_text(Bytes bytes);
std::string time_text(Nanoseconds time);

}  // namespace gantry::plan

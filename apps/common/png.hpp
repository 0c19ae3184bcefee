// SPDX-License-Identifier: BSD-3-Clause
//
// A picture as a PNG file that any viewer opens. Its data is stored, not compressed: pictures here are
// small, and so the program needs no library for them.
#pragma once

#include "global_fields.hpp"

#include <string>

namespace gantry::apps {

// From `low` (blue) over the middle (white) to `high` (red); the last row of the slice is on top. Each value becomes
// `zoom` x `zoom` dots.
void write_png(const std::string& path, const Slice& slice, double low, double high, int zoom);

}  // namespace gantry::apps

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "contents.hpp"
#include "way.hpp"

#include <vector>

namespace gantry::bench {

enum class Bare { put_and_flag, copy, kernel, two_copies };

// The floors that there are for these placements; the same on both ranks.
std::vector<Bare> floors_of(const Options& options, const Plan& plan);
// Both ranks make it for the same pair of buffers, which outlive it.
std::unique_ptr<Way> bare_way(Bare kind, const Options& options, const Buffer& outgoing,
                              const Buffer& incoming);

}  // namespace gantry::bench

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

namespace gantry::job {

// "2,5-7" -> 2 5 6 7. What is no rank of a job of that size is left out.
std::vector<int> parse_rank_list(std::string_view text, int size);

}  // namespace gantry::job

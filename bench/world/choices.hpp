// SPDX-License-Identifier: BSD-3-Clause
//
// Every algorithm of a collective in the world, each fixed in turn, beside the one that the planner chooses.
#pragma once

#include "world/harness/collective_times.hpp"

#include <string>
#include <vector>

namespace gantry::reproduce {

struct ChoicesOptions {
    std::string cluster;                  // empty: all
    std::vector<std::string> operations;  // empty: all
    std::vector<int> ranks;
    std::vector<std::uint64_t> sizes;
    bool host = false;  // host memory instead of device memory
    bool only_chosen = false;
    double worse = 1.25;  // rows that take so many times the best one's time are marked
    bool json = false;
};
// The operations that there are.
std::vector<std::string> collectives_of_choices();
int choices(const ChoicesOptions& options);

}  // namespace gantry::reproduce

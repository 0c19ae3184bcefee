// SPDX-License-Identifier: BSD-3-Clause
//
// Medians and how sure they are: the 95 % interval of a median by order statistics, which assumes
// nothing about the distribution.
#pragma once

#include <vector>

namespace gantry::bench {

struct Median {
    double value = 0, low = 0, high = 0;
    int samples = 0;
};
Median median(std::vector<double> samples);

}  // namespace gantry::bench

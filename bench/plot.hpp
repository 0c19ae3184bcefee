// SPDX-License-Identifier: BSD-3-Clause
//
// gantry-bench plot FILE...: what runs printed with --json, as one picture: curves with their bands, how they
// compare with the first one, and where two of them cross.
#pragma once

#include "chart.hpp"

#include <string>
#include <vector>

namespace gantry::bench {

struct Crossing {
    std::string before, after;  // the better one at smaller, at larger sizes
    double bytes = 0;
};
// Of each pair of curves; between two sizes as straight lines of logarithms go.
std::vector<Crossing> crossings(const std::vector<Curve>& curves, bool smaller_is_better);

// No rank: neither MPI nor a driver starts. Exit status.
int plot(int argc, char** argv);

}  // namespace gantry::bench
